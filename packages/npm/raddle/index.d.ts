/** The path of the binary. Throws if there is none for this system. */
export function findBin(): string;
