"""A software bill of materials for each package: CycloneDX 1.6, as JSON.

It contains no times and no random values: the same binary gives the same bytes.
"""

import hashlib
import json
import uuid

#: Its file name; in a wheel it is in `sboms/` (PEP 770).
FILE = "raddle.cdx.json"

_SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
_PROGRAM = "raddle"
_LICENCE = "Apache-2.0"


def sbom(kind, name, version, crates, program, rust):
    """Returns the bill of a package with the binary. `kind` is the package's type in a package URL,
    `rust` the version of the compiler."""
    package = _package(kind, name, version)
    binary = {
        "type": "application",
        "bom-ref": _PROGRAM,
        "name": _PROGRAM,
        "version": version,
        "hashes": [_sha256(hashlib.sha256(program).hexdigest())],
        "licenses": [{"expression": _LICENCE}],
    }
    # Libraries that the compiler links besides the crates. The version of its musl is unknown.
    runtime = [
        _library("rust-std", rust, "MIT OR Apache-2.0"),
        _library("musl", None, "MIT"),
    ]
    components = [binary, *runtime, *(_crate(it) for it in crates if it.name != _PROGRAM)]
    needs = {_ref(it): [_ref_of(need) for need in it.needs] for it in crates}
    needs[_PROGRAM] += [it["bom-ref"] for it in runtime]
    needs[package["bom-ref"]] = [_PROGRAM]
    return _bom(package, components, needs)


def sbom_of_launcher(name, version, carrier):
    """Returns the bill of the npm package without the binary, which depends on the one with it."""
    package = _package("npm", name, version)
    carried = _package("npm", carrier, version)
    needs = {package["bom-ref"]: [carried["bom-ref"]], carried["bom-ref"]: []}
    return _bom(package, [carried], needs)


def _bom(package, components, needs):
    components = sorted(components, key=lambda it: it["bom-ref"])
    named = {it["bom-ref"] for it in components} | {package["bom-ref"]}
    dependencies = [
        {"ref": ref, "dependsOn": sorted(set(needs.get(ref, [])))} for ref in sorted(named)
    ]
    bom = {
        "$schema": _SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": package},
        "components": components,
        "dependencies": dependencies,
    }
    digest = hashlib.sha256(_bytes(bom)).hexdigest()
    return _bytes({**bom, "serialNumber": f"urn:uuid:{uuid.UUID(digest[:32], version=4)}"})


def _package(kind, name, version):
    purl = f"pkg:{kind}/{name}@{version}"
    return {
        "type": "application",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": _LICENCE}],
        "purl": purl,
    }


def _crate(crate):
    component = {
        "type": "library",
        "bom-ref": _ref(crate),
        "name": crate.name,
        "version": crate.version,
        "licenses": [_licence(crate)],
    }
    if not crate.is_ours:
        component["hashes"] = [_sha256(crate.checksum)]
        component["purl"] = _ref(crate)
    if crate.repository and not crate.is_ours:
        component["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
    return component


def _library(name, version, licence):
    component = {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "licenses": [{"expression": licence}],
    }
    return {**component, "version": version} if version else component


def _licence(crate):
    if not crate.licence:
        return {"license": {"name": f"see the licence file of {crate.name} {crate.version}"}}
    # Older manifests write a slash for "or".
    expression = " OR ".join(it.strip() for it in crate.licence.split("/"))
    return {"expression": expression}


def _ref(crate):
    return _ref_of(crate.key)


def _ref_of(key):
    name, version = key
    return _PROGRAM if name == _PROGRAM else f"pkg:cargo/{name}@{version}"


def _sha256(content):
    return {"alg": "SHA-256", "content": content}


def _bytes(bom):
    return (json.dumps(bom, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
