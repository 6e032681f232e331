//! Lines of a client, looked at before the SDK reads them: it drops a line that is no JSON without a word, and a client would
//! wait for its reply for ever.

use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;

/// Bytes of one line that are read; the SDK has the same limit.
const LONGEST: usize = 16 * 1024 * 1024;
/// Bytes that wait for the SDK.
const PIPE: usize = 64 * 1024;
/// Refusals that wait to go out.
const REFUSALS: usize = 64;

/// What a client says: what can be read, and the replies to what can't.
pub(crate) struct Lines {
    /// Lines of JSON.
    pub readable: DuplexStream,
    /// Replies to the others.
    pub refusals: mpsc::Receiver<JsonRpcError>,
}

/// Looks at each line of the input until it ends.
pub(crate) fn look_at(input: impl AsyncRead + Send + Unpin + 'static) -> Lines {
    let (passed_on, readable) = tokio::io::duplex(PIPE);
    let (tell, refusals) = mpsc::channel(REFUSALS);
    tokio::spawn(pump(BufReader::new(input), passed_on, tell));
    Lines { readable, refusals }
}

async fn pump(
    mut input: BufReader<impl AsyncRead + Unpin>,
    mut passed_on: DuplexStream,
    tell: mpsc::Sender<JsonRpcError>,
) {
    let mut line = Vec::new();
    loop {
        line.clear();
        // Where the input fails it has ended.
        let Ok(Some(whole)) = read_line(&mut input, &mut line).await else { return };
        let refusal = match whole {
            true => refusal(&line),
            false => Some(JsonRpcError::new(
                None,
                ErrorData::parse_error(format!("the line is longer than {LONGEST} bytes"), None),
            )),
        };
        let gone = match refusal {
            Some(refusal) => {
                tracing::warn!(reason = %refusal.error.message, "the client sent a line that is refused");
                tell.send(refusal).await.is_err()
            }
            None => passed_on.write_all(&line).await.is_err(),
        };
        if gone {
            return;
        }
    }
}

/// Reads one line with its end. False where it was too long and was passed over; nothing at the end of the input.
async fn read_line(input: &mut BufReader<impl AsyncRead + Unpin>, line: &mut Vec<u8>) -> std::io::Result<Option<bool>> {
    let mut whole = true;
    loop {
        let piece = input.fill_buf().await?;
        if piece.is_empty() {
            return Ok((!line.is_empty() || !whole).then_some(whole));
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |at| at + 1);
        if whole && line.len() + length <= LONGEST {
            line.extend_from_slice(&piece[..length]);
        } else {
            (whole, *line) = (false, Vec::new());
        }
        input.consume(length);
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}

/// The reply to a line that is no JSON; nothing for one that is, and for an empty one.
fn refusal(line: &[u8]) -> Option<JsonRpcError> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let error = serde_json::from_slice::<Value>(line).err()?;
    let reason = format!("this line is not JSON that can be read: {error}");
    Some(JsonRpcError::new(id(line), ErrorData::parse_error(reason, None)))
}

/// The id of a request whose rest can't be read: half of a pair of surrogates in a text, or too many brackets.
fn id(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Head {
        id: Value,
        #[serde(rename = "method")]
        _method: IgnoredAny,
    }
    let head: Head = serde_json::from_slice(line).ok()?;
    serde_json::from_value(head.id).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rmcp::model::NumberOrString;
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn looked_at(input: Vec<u8>) -> (String, Vec<JsonRpcError>) {
        let mut lines = look_at(std::io::Cursor::new(input));
        let mut passed = String::new();
        lines.readable.read_to_string(&mut passed).await.unwrap();
        let mut refused = Vec::new();
        while let Some(refusal) = lines.refusals.recv().await {
            refused.push(refusal);
        }
        (passed, refused)
    }

    #[tokio::test]
    async fn json_is_passed_on_as_it_is_and_the_rest_is_answered() {
        let deep =
            format!("{{\"id\":\"deep\",\"method\":\"x\",\"params\":{}{}}}\n", "[".repeat(1000), "]".repeat(1000));
        let input = [
            "{\"id\":1,\"method\":\"ping\"}\n",
            "\n",
            "{\"id\":50,\"method\":\"x\",\"params\":\"a\\ud83d\"}\n",
            &deep,
            "junk\n",
            "[1, 2]\n",
            "{\"id\":2}",
        ];
        let (passed, refused) = looked_at(input.concat().into_bytes()).await;
        assert_eq!(passed, "{\"id\":1,\"method\":\"ping\"}\n\n[1, 2]\n{\"id\":2}");
        let ids: Vec<_> = refused.iter().map(|refusal| refusal.id.clone()).collect();
        assert_eq!(ids, [Some(NumberOrString::Number(50)), Some(NumberOrString::String("deep".into())), None]);
        assert!(refused.iter().all(|refusal| refusal.error.code == rmcp::model::ErrorCode::PARSE_ERROR));
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_and_lines_without_end_are_answered_and_passed_over() {
        let mut input = b"{\"id\":1,\"method\":\"x\",\"params\":\"\xff\"}\n".to_vec();
        input.extend(std::iter::repeat_n(b' ', LONGEST + 1));
        input.extend(b"\n{\"id\":3}\n");
        let (passed, refused) = looked_at(input).await;
        assert_eq!(passed, "{\"id\":3}\n");
        assert_eq!(refused.len(), 2);
        assert!(refused[1].error.message.contains("longer than"));
    }
}
