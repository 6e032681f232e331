//! What a data folder or a database holds.

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
