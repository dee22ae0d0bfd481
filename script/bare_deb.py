"""Inside a bare Debian (script/check_bare): installs the packages of /check and uses them."""
import pathlib
import re
import subprocess
import sys

CHECK = pathlib.Path("/check")
MODEL = CHECK / "cnn" / "model.onnx"
faults = []


def expect(fine, text):
    print(("" if fine else "error: ") + text, flush=True)
    if not fine:
        faults.append(text)


def call(*command, status=0):
    """What the command writes; its status has to be that."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != status:
        expect(False, f"{' '.join(map(str, command))}: status {done.returncode}, wanted {status}: "
               f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def installed():
    """The names of all packages."""
    return set(call("dpkg-query", "-W", "-f", "${Package}\n").split())


def package(name):
    return next(CHECK.glob(f"{name}_*.deb"))


def command():
    before = installed()
    call("apt-get", "install", "-y", "--no-install-recommends", package("heddle"), package("libheddle0"))
    more = installed() - before
    expect({"heddle", "libheddle0"} <= more and len(more) <= 4, f"apt install brought {', '.join(sorted(more))}")
    print("installed size (KiB):", call("dpkg-query", "-W", "-f", "${Package} ${Installed-Size}, ", "heddle", "libheddle0"))
    expect(call("heddle", "--version").startswith("heddle "), "heddle --version")
    expect("output out" in call("heddle", "run", MODEL), "heddle run")
    expect("PASS" in call("heddle", "check", CHECK / "trained/cnn.onnx", "--dim", "N=4"), "heddle check")
    doctor = call("heddle", "doctor")
    expect("/usr/lib/heddle/libheddle-llvm.so" in doctor, "heddle doctor finds the code generator")


def development():
    call("apt-get", "install", "-y", "--no-install-recommends", package("libheddle-dev"), "gcc", "libc6-dev", "pkg-config")
    flags = call("pkg-config", "--cflags", "--libs", "heddle").split()
    call("gcc", CHECK / "embed/main.c", "-o", "/tmp/embed", *flags)
    told = call("/tmp/embed", MODEL)
    expect(re.match(r"out\[0\] = -?\d", told), f"a C program over libheddle-dev: {told.strip()}")


def static():
    """libheddle.a wants a C++ linker, fmt and SQLite, which are only suggested."""
    call("apt-get", "install", "-y", "--no-install-recommends", "g++", "libfmt-dev", "libsqlite3-dev")
    flags = call("pkg-config", "--cflags", "--libs", "heddle-static").split()
    call("gcc", CHECK / "embed/main.c", "-o", "/tmp/embed_static", *flags)
    pathlib.Path("/tmp/libheddle-llvm.so").symlink_to("/usr/lib/heddle/libheddle-llvm.so")
    told = call("/tmp/embed_static", MODEL)
    expect(re.match(r"out\[0\] = -?\d", told), f"a C program with libheddle.a: {told.strip()}")


def removed():
    call("apt-get", "purge", "-y", "heddle", "libheddle0", "libheddle-dev")
    left = [str(p) for place in ("bin", "lib", "include", "share") for p in pathlib.Path("/usr", place).rglob("*heddle*")]
    expect(not left, f"apt purge leaves nothing {left[:3] if left else ''}")
    audit = call("dpkg", "--audit")
    expect(not audit, f"dpkg --audit is silent {audit}")


call("apt-get", "update")
command()
development()
static()
removed()
sys.exit(1 if faults else 0)
