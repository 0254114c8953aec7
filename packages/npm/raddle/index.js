"use strict";

/** Returns the path of the binary, which is in a separate package for each platform. */
function findBin() {
  const carrier = `raddle-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${carrier}/bin/raddle`);
  } catch {
    throw new Error(
      `the package ${carrier} is not installed: install it beside raddle, without --omit=optional; ` +
        "if there is none for this platform, build Raddle from source",
    );
  }
}

exports.findBin = findBin;
