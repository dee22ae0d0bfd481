"""Another commit's build: a git worktree under build/against, built there; ccache makes it quick."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
FOLDER = os.path.join(ROOT, "build", "against")


class Failed(Exception):
    """The line says why."""


def git(*arguments, folder=ROOT):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"git {' '.join(arguments)}: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()


def short(commit):
    return git("rev-parse", "--short=10", "--verify", f"{commit}^{{commit}}")


def this_commit():
    """Of the checkout; with a + behind it where something is not committed."""
    changed = git("status", "--porcelain", "--untracked-files=no")
    return short("HEAD") + ("+" if changed else "")


def has_target(folder, name):
    """Whether that commit's build knows the target: it may be older."""
    done = subprocess.run(["ninja", "-C", folder, "-t", "query", name], capture_output=True, check=False)
    return done.returncode == 0


def build(source, folder, targets):
    """Builds those of the targets that `source` has into `folder`."""
    environment = {**os.environ, "CCACHE_BASEDIR": source, "CCACHE_NOHASHDIR": "1"}
    configure = ["cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DCMAKE_CXX_FLAGS_RELEASE=-O2", "-DHEDDLE_TESTS=OFF", "-DHEDDLE_BENCH=ON"]
    jobs = str(len(os.sched_getaffinity(0)))
    done = subprocess.run(configure, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{source}: cmake: {done.stderr.strip()[-300:]}")
    known = [target for target in targets if has_target(folder, target)]
    done = subprocess.run(["cmake", "--build", folder, "-j", jobs, "--target", *known],
                          env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{source}: the build broke: {done.stdout.strip()[-600:]}")
    return folder


def checkout(commit):
    """The folder of that commit's sources, as a worktree that stays."""
    name = short(commit)
    source = os.path.join(FOLDER, name)
    if not os.path.isdir(source):
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", source, name)
    return source


def build_commit(commit, targets):
    """The folder that holds the programs of that commit."""
    source = checkout(commit)
    return build(source, os.path.join(source, "build", "bench"), targets)
