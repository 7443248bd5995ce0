/**
 * The full-text index: segments of posting blocks. Everything is keyed by owner first, so that a rule by owner hides the terms of others from a
 * role. Blocks are small and hardly compressible, so they are stored uncompressed; a part of a long one can then be read by itself.
 */
export const sql = `
CREATE SEQUENCE index_numbers;

-- One row for each owner. Whoever changes the index of an owner locks it.
CREATE TABLE index_heads (
  owner text COLLATE "C" PRIMARY KEY,
  -- The segments in use; others belong to a rebuild that is not done.
  generation bigint NOT NULL,
  -- The version of the text analysis that made them.
  analysis bigint NOT NULL,
  -- Why searches cannot trust it; null when they can.
  problem text COLLATE "C",
  -- The generation that a rebuild under way makes.
  rebuild bigint
);

CREATE TABLE index_segments (
  owner text COLLATE "C" NOT NULL REFERENCES index_heads ON DELETE CASCADE,
  generation bigint NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('message', 'summary')),
  segment bigint NOT NULL,
  documents bigint NOT NULL,
  low_id bigint NOT NULL,
  high_id bigint NOT NULL,
  PRIMARY KEY (owner, generation, kind, segment)
);

CREATE TABLE index_postings (
  owner text COLLATE "C" NOT NULL,
  segment bigint NOT NULL,
  -- 0 a word, 1 an identifier, 2 a conversation
  field smallint NOT NULL,
  term text COLLATE "C" NOT NULL,
  documents bytea NOT NULL,
  places bytea NOT NULL,
  PRIMARY KEY (owner, segment, field, term)
);
ALTER TABLE index_postings ALTER COLUMN documents SET STORAGE EXTERNAL;
ALTER TABLE index_postings ALTER COLUMN places SET STORAGE EXTERNAL;

-- The documents of the index, with their length in words. A summary is also known by its name, because its number goes with it.
CREATE TABLE index_documents (
  kind text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  owner text COLLATE "C" NOT NULL,
  words bigint NOT NULL,
  name text COLLATE "C",
  PRIMARY KEY (kind, id)
);
CREATE INDEX index_documents_by_name ON index_documents (name) WHERE name IS NOT NULL;

-- Words as the messages of a segment spell them, in parts of some hundred messages, and those with more than words tell. Without words, a
-- part has to be made again.
CREATE TABLE index_spellings (
  owner text COLLATE "C" NOT NULL,
  segment bigint NOT NULL,
  part bigint NOT NULL,
  ids bytea NOT NULL,
  opaque_ids bytea NOT NULL,
  words bytea,
  PRIMARY KEY (owner, segment, part)
);
ALTER TABLE index_spellings ALTER COLUMN words SET STORAGE EXTERNAL;

-- Summaries that are not in the index yet; for messages there is index_pending.
CREATE TABLE index_pending_summaries (
  summary_ref bigint PRIMARY KEY REFERENCES summary_refs ON DELETE CASCADE
);

-- Documents that were removed and whose terms still have to be taken out of their segment. Searches leave them out.
CREATE TABLE index_gone (
  owner text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  PRIMARY KEY (owner, kind, id)
);`;
