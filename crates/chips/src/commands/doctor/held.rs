//! What a data folder or a database holds.

use chips_store::OpenError;
use chips_store::admin::{Admin, AdminError};

use super::Findings;
use crate::folder::Folder;
use crate::present;

/// Looks at what is in it, and says what of that is not as it should be.
///
/// # Errors
/// It can't be opened or read.
pub(super) fn examine(area: &'static str, folder: &Folder, findings: &mut Findings) -> Result<(), AdminError> {
    let shown = folder.location();
    let mut admin = Admin::open(&shown)?;
    let (count, erasures) = (admin.workspaces()?.len(), admin.erasures()?);
    findings.ok(area, format!("{shown} holds {count} workspace{}", if count == 1 { "" } else { "s" }));
    // One that was run again, and carried out then, is done with those before it.
    let mut cut_short: Vec<_> = erasures.iter().filter(|erasure| !erasure.done).collect();
    cut_short.dedup_by_key(|erasure| &erasure.id);
    for erasure in cut_short {
        findings.wrong(
            area,
            format!("erasing {} began at {} and was not carried out to the end", erasure.id, erasure.at),
            format!(
                "unless it is running just now, run it again: `{}`",
                folder.command(&format!("erase --{} {}", erasure.what, erasure.id))
            ),
        );
    }
    for one in admin.ownerless()? {
        let workspace = one.workspace_id;
        match one.people {
            0 => findings.wrong(
                area,
                format!("nobody can sign in to {workspace}: everybody in it is disabled"),
                format!("add somebody: `{}`", folder.command(&format!("person add NAME --workspace {workspace}"))),
            ),
            _ => findings.note(
                area,
                format!("nobody owns {workspace} any more: its owner can't sign in"),
                "what the others in it may do is as it was, so nothing has to be done",
            ),
        }
    }
    for one in admin.unheard(None)? {
        findings.wrong(area, present::unheard_says(&one), present::unheard_mend(&one, folder));
    }
    Ok(())
}

/// What helps where a folder can't be opened or read. A backup is advised only where something is damaged.
pub(super) fn mend(error: &AdminError) -> &'static str {
    match error {
        AdminError::Open(OpenError::Newer { .. }) => {
            "nothing is damaged: install that version here, or name another folder with --data"
        }
        AdminError::Open(OpenError::Foreign { .. }) => {
            "name another folder with --data; where this was one of Chips, its database was overwritten: restore a backup into a new folder"
        }
        AdminError::Open(OpenError::Damaged { .. }) | AdminError::Damaged(_) => {
            "look at the disk first (`dmesg`); then restore a backup into a new folder, or name another with --data"
        }
        _ => {
            "see that this user may write the folder and its files, and that its disk takes writes; nothing says that what is in it is \
             damaged"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_modes_keep_out_is_not_sent_for_a_backup() {
        let kept_out = OpenError::Io { path: "/srv/chips/chips.db".into(), reason: "Permission denied".to_owned() };
        for error in [AdminError::Open(kept_out), AdminError::Io("attempt to write a readonly database".into())] {
            assert!(mend(&error).contains("may write the folder") && !mend(&error).contains("backup"), "{error}");
        }
        assert!(mend(&AdminError::Damaged("database disk image is malformed".into())).contains("backup"));
    }
}
