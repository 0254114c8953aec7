/** Returns the path of the binary. Throws if there is none for this platform. */
export function findBin(): string;
