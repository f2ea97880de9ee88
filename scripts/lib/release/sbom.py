"""The list of parts in CycloneDX's form (JSON, version 1.6), which scanners read: the same parts make the same
bytes."""

import json
import uuid
from datetime import datetime, timezone

import parts

VERSION = "1.6"
ROOT = "gesso"


def document(machine, all_parts, epoch):
    """The list as text. `epoch` is the time that it carries, in seconds."""
    components = [_component(part) for part in all_parts]
    shipped = [_reference(part) for part in all_parts if part.shipped]
    here = {part.key: _reference(part) for part in all_parts}
    edges = [{"ref": ROOT, "dependsOn": shipped}]
    edges += [
        {"ref": _reference(part), "dependsOn": sorted(here[key] for key in part.needs if key in here)}
        for part in all_parts
    ]
    listed = {
        "$schema": f"http://cyclonedx.org/schema/bom-{VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": VERSION,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).isoformat().replace("+00:00", "Z"),
            "component": {
                "type": "application",
                "bom-ref": ROOT,
                "name": "gesso",
                "version": parts.version(),
                "licenses": [{"expression": "Apache-2.0"}],
                "purl": f"pkg:generic/gesso@{parts.version()}?arch={machine}",
            },
        },
        "components": components,
        "dependencies": edges,
    }
    # A list's number follows from what is in it.
    number = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(listed, sort_keys=True))
    return json.dumps(listed | {"serialNumber": f"urn:uuid:{number}"}, indent=1) + "\n"


def _component(part):
    entry = {
        "type": "library",
        "bom-ref": _reference(part),
        "name": part.name,
        "version": part.version,
        # What only helps to build is not in what is shipped.
        "scope": "required" if part.shipped else "excluded",
        "licenses": [{"expression": part.licence}],
        "purl": _reference(part),
    }
    if part.checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": part.checksum}]
    if part.source:
        entry["externalReferences"] = [{"type": "vcs", "url": part.source}]
    if part.holds:
        entry["components"] = [_component(held) for held in part.holds]
    return entry


def _reference(part):
    return f"pkg:{'cargo' if part.is_crate else 'generic'}/{part.name}@{part.version}"
