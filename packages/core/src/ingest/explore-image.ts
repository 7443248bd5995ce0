/**
 * Reads an image's size from its header, without decoding it. Null or 0 × 0 never appear: a file with an unknown header is not treated as
 * an image.
 */

interface Dimensions {
  readonly width: number;
  readonly height: number;
}

const READERS: { readonly [mimeType: string]: (bytes: Buffer) => Dimensions | null } = {
  "image/png": readPng,
  "image/gif": readGif,
  "image/jpeg": readJpeg,
  "image/webp": readWebp,
};

/** `PNG image, 640 × 480 pixels, 12.3 kB`, or null when the type is not an image. */
export function describeImage(bytes: Buffer, type: string, size: string): string | null {
  if (!type.startsWith("image/")) return null;
  const name = type.slice("image/".length).toUpperCase();
  const dimensions = READERS[type]?.(bytes) ?? null;
  const pixels = dimensions ? `, ${dimensions.width} × ${dimensions.height} pixels` : "";
  return `${name} image${pixels}, ${size}`;
}

function readPng(bytes: Buffer): Dimensions | null {
  if (bytes.length < 24) return null;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function readGif(bytes: Buffer): Dimensions | null {
  if (bytes.length < 10) return null;
  return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

/** Walks the segments to the first start-of-frame marker. */
function readJpeg(bytes: Buffer): Dimensions | null {
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] as number;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    at += 2 + Math.max(2, bytes.readUInt16BE(at + 2));
  }
  return null;
}

function readWebp(bytes: Buffer): Dimensions | null {
  if (bytes.length < 30) return null;
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}
