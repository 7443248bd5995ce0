/** Words as texts spell them, by blocks of messages: a regular expression that requires a literal reads only blocks that spell it. */
export const version = 11;

export const sql = `
CREATE TABLE word_blocks (
  block INTEGER PRIMARY KEY,  -- number n: the messages with ids from 512 n + 1 to 512 (n + 1)
  words BLOB NOT NULL         -- zstd with checksum: a line of ids of opaque messages, then each word on a line
) STRICT;
`;
