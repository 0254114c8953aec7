"use strict";

/** The path of the binary, which a package of its own carries for each system. */
function findBin() {
  const carrier = `raddle-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${carrier}/bin/raddle`);
  } catch {
    throw new Error(
      `the package ${carrier} is not installed: install it beside raddle, without --omit=optional; ` +
        "if there is none for this system, build Raddle from its source",
    );
  }
}

exports.findBin = findBin;
