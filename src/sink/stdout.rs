use std::io::Write;
use std::sync::Arc;

use super::{Report, Reports, SinkError};
use crate::model::{OutgoingRecord, Sequence};

/// Prints each record as one readable line and acknowledges it once it is written.
pub struct StdoutSink {
    reports: Arc<Reports>,
    line: Vec<u8>,
}

impl StdoutSink {
    pub(super) fn new(reports: Arc<Reports>) -> Self {
        Self {
            reports,
            line: Vec::new(),
        }
    }

    pub(super) fn enqueue(
        &mut self,
        sequence: Sequence,
        record: &OutgoingRecord<'_>,
    ) -> Result<(), SinkError> {
        self.line.clear();
        write_record(record, &mut self.line);
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&self.line)?;
        stdout.flush()?;
        self.reports.put(Report::delivered(sequence));
        Ok(())
    }
}

/// `topic  key=…  headers=[name:value, …]  value=…`, with line breaks and other control
/// characters escaped so that a record stays one line.
fn write_record(record: &OutgoingRecord<'_>, line: &mut Vec<u8>) {
    line.extend_from_slice(record.topic.as_bytes());
    line.extend_from_slice(b"  key=");
    write_bytes(record.key, line);
    line.extend_from_slice(b"  headers=[");
    for (index, header) in record.headers.iter().enumerate() {
        if index > 0 {
            line.extend_from_slice(b", ");
        }
        line.extend_from_slice(header.name.as_bytes());
        line.push(b':');
        write_bytes(header.value, line);
    }
    line.extend_from_slice(b"]  value=");
    write_bytes(record.value, line);
    line.push(b'\n');
}

fn write_bytes(bytes: Option<&[u8]>, line: &mut Vec<u8>) {
    let Some(bytes) = bytes else {
        line.extend_from_slice(b"(null)");
        return;
    };
    for character in String::from_utf8_lossy(bytes).chars() {
        if character.is_control() {
            line.extend(character.escape_default().map(|c| c as u8));
        } else {
            line.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Header;

    #[test]
    fn a_record_is_one_readable_line() {
        let record = OutgoingRecord {
            topic: "claims.claim.events",
            key: Some(b"CLM-1"),
            value: Some("{\"by\":\n\"Zoë\"}".as_bytes()),
            headers: &[
                Header {
                    name: "id",
                    value: Some(b"1"),
                },
                Header {
                    name: "tenant",
                    value: None,
                },
            ],
        };
        let mut line = Vec::new();
        write_record(&record, &mut line);
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "claims.claim.events  key=CLM-1  headers=[id:1, tenant:(null)]  value={\"by\":\\n\"Zoë\"}\n"
        );
    }
}
