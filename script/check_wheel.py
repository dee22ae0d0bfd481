#!/usr/bin/env python3
"""What a wheel is made of: check_wheel.py WHEEL...      (auditwheel, script/bootstrap package)

Fails where it is larger than promised (docs/python.md), has a part too few, needs a library that is
not on every Linux of its tag, shows symbols that are not its interface, or auditwheel finds a fault.
"""
import io
import pathlib
import re
import subprocess
import sys
import zipfile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

PACKED, UNPACKED = 20_000_000, 60_000_000
PARTS = ["libheddle.so.0", "libheddle-llvm.so", "libheddle_pjrt.so", "bin/heddle", "__init__.py",
         "__main__.py", "_core.pyi", "py.typed", "torch/__init__.py", "licences/llvm-19-dev.txt",
         "licences/nanobind.txt", "licences/heddle.spdx.json"]
SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2",
          "ld-linux-x86-64.so.2"}
# What each library shows to the process that loads it; another LLVM there must not meet ours.
SHOWN = {"libheddle.so.0": r"heddle_\w+", "libheddle-llvm.so": "heddle_emit",
         "libheddle_pjrt.so": r"GetPjrtApi|heddle_\w+"}


def dynamic(elf):
    """The libraries that it needs and the symbols that it defines."""
    section = next((s for s in elf.iter_sections() if isinstance(s, DynamicSection)), None)
    needed = {tag.needed for tag in section.iter_tags("DT_NEEDED")} if section else set()
    symbols = elf.get_section_by_name(".dynsym")
    defined = {s.name for s in symbols.iter_symbols() if s["st_shndx"] != "SHN_UNDEF" and
               s["st_info"]["bind"] != "STB_LOCAL"} if symbols else set()
    return needed, defined


def faults_of_binary(path, data):
    elf = ELFFile(io.BytesIO(data))
    needed, defined = dynamic(elf)
    name = pathlib.PurePath(path).name
    for library in sorted(needed - SYSTEM - {"libheddle.so.0"}):
        yield f"{path} needs {library}, wanted libraries of glibc and GCC alone"
    if elf.get_section_by_name(".symtab"):
        yield f"{path} is not stripped"
    pattern = next((text for key, text in SHOWN.items() if name.startswith(key)), None)
    if pattern:
        others = sorted(s for s in defined if not re.fullmatch(pattern, s))
        if others:
            yield f"{path} shows {len(others)} symbols that are not its interface, as {others[0]}"


def faults(wheel):
    packed = wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: info.file_size for info in archive.infolist()}
        unpacked = sum(files.values())
        print(f"{wheel.name}: {packed / 1e6:.1f} MB, {unpacked / 1e6:.1f} MB unpacked")
        for name, size in sorted(files.items(), key=lambda item: -item[1])[:4]:
            print(f"  {size / 1e6:5.1f} MB  {name}")
        if packed > PACKED or unpacked > UNPACKED:
            yield f"wanted at most {PACKED / 1e6:.0f} MB, and {UNPACKED / 1e6:.0f} MB unpacked"
        for part in PARTS:
            if "heddle/" + part not in files:
                yield f"heddle/{part} is missing"
        for name in files:
            with archive.open(name) as file:
                if file.read(4) == b"\x7fELF":
                    yield from faults_of_binary(name, archive.read(name))
    told = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True,
                          text=True, check=False)
    consistent = re.search(r"platform tag:\s*\"(\w+)\"", " ".join(told.stdout.split()))
    if told.returncode != 0 or not consistent:
        yield f"auditwheel show: {told.stdout}{told.stderr}"
    elif consistent[1] not in wheel.name or "manylinux" not in consistent[1]:
        yield f"auditwheel show: the tag is {consistent[1]}"
    else:
        print(f"  auditwheel: {consistent[1]}")


def main(paths):
    if not paths:
        sys.exit(__doc__)
    found = [f"error: {path}: {fault}" for path in paths for fault in faults(pathlib.Path(path))]
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
