"""Machines that have nothing yet: folders with a minimal Debian, which programs are run in as if there were no other.

What is mounted there is mounted for one command alone, in a mount namespace of its own that ends with it. So nothing is
left to be unmounted, and nothing that is removed can lie behind a mount.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

User = Literal["root", "user", "alone"]

# What somebody has who has only just heard of Octavo. The last is for the certificates of package indexes.
PACKAGES: Final = ("python3", "python3-venv", "make", "git", "ca-certificates")
# How this machine reaches packages; copied as they are.
_SETTINGS: Final = ("/etc/pip.conf", "/etc/maven/settings.xml", "/etc/npmrc", "/etc/resolv.conf", "/etc/hosts")
_SETTINGS_AT_HOME: Final = (".config/pip/pip.conf", ".pip/pip.conf", ".m2/settings.xml", ".npmrc", ".config/go/env")
_CERTIFICATES: Final = Path("/usr/local/share/ca-certificates")
_OF_CLIENTS: Final = (
    "pip_",
    "npm_config_",
    "maven_",
    "goproxy",
    "gosumdb",
    "gonosumdb",
    "goflags",
    "ssl_cert_",
    "node_extra_ca_certs",
)
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The packages of which a PATH has the programs on which nothing else is found: what every system has, and the four.
_ALONE: Final = (
    "coreutils",
    "sed",
    "grep",
    "mawk",
    "findutils",
    "diffutils",
    "dash",
    "bash",
    "python3-minimal",
    "make",
    "git",
)
_HOMES: Final = {"root": "/root", "user": "/home/octavo", "alone": "/home/octavo"}

_ENTER: Final = """
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
root=$1; user=$2; shift 2
exec chroot --userspec="$user" "$root" "$@"
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A folder with a Debian, in which Octavo is checked out in the home of its user.

    user: `root`; a `user` without sudo; or that user `alone`, with no variables but those of package clients and a PATH
        on which little is found.
    """

    root: Path
    user: User

    @property
    def checkout(self) -> str:
        """Where Octavo is, seen from inside."""
        return f"{_HOMES[self.user]}/octavo"

    def command(self, script: str, variables: Mapping[str, str]) -> list[str]:
        """What runs a script of the shell in the checkout, with these variables besides."""
        given = {"PATH": _PATH, "HOME": _HOMES[self.user], "LANG": "C.UTF-8"}
        if self.user == "alone":
            given = {"PATH": "/alone"}
        assignments = [f"{name}={value}" for name, value in {**given, **_variables(), **variables}.items()]
        inside = ["/usr/bin/env", "-i", *assignments, "/bin/sh", "-c", f"cd {shlex.quote(self.checkout)} && {script}"]
        numbers = "0:0" if self.user == "root" else "1000:1000"
        namespaces = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
        return [*namespaces, "sh", "-c", _ENTER, "sh", str(self.root), numbers, *inside]


def bootstrap(suite: str, folder: Path) -> Path:
    """Make `folder` a minimal Debian of that suite with the packages alone, unless it is one already."""
    if not (folder / "made").exists():
        remove(folder)
        include = f"--include={','.join(PACKAGES)}"
        _run(["debootstrap", "--variant=minbase", include, suite, str(folder), *mirror()])
        (folder / "made").touch()
    return folder


def mirror() -> list[str]:
    """The address that this machine has Debian from; nothing if it has none, since debootstrap has a default."""
    told = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True)
    addresses = [line.rstrip("/") for line in told.stdout.splitlines()]
    return next(([address] for address in addresses if address.endswith("/debian")), [])


def copy(base: Path, folder: Path, user: User, source: Path) -> Machine:
    """A machine of its own: a copy of `base` with the settings of package clients, and a clone of `source`."""
    remove(folder)
    _run(["cp", "--archive", str(base), str(folder)])
    machine = Machine(folder, user)
    _copy_settings(folder, _HOMES[user])
    if user != "root":
        _run(["chroot", str(folder), "useradd", "--create-home", "--uid", "1000", "octavo"])
    home = folder / _HOMES[user][1:]
    _run(["git", "clone", "--quiet", "--no-hardlinks", str(source), str(home / "octavo")])
    if user != "root":
        _run(["chown", "--recursive", "1000:1000", str(home)])
    if user == "alone":
        _make_alone(folder)
    return machine


def remove(folder: Path) -> None:
    """Remove what was made, unless something is mounted in it, which nothing here leaves."""
    inside = [point for point in _mounted() if point.is_relative_to(folder.resolve())]
    if inside:
        raise RuntimeError(f"not removed, since something is mounted there: {inside[0]}")
    if folder.exists():
        shutil.rmtree(folder)


def _mounted() -> Iterator[Path]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        yield Path(line.split()[4])


def _copy_settings(folder: Path, home: str) -> None:
    here = Path(os.environ.get("HOME", "/root"))
    files = [(Path(name), folder / name[1:]) for name in _SETTINGS]
    files += [(here / name, folder / home[1:] / name) for name in _SETTINGS_AT_HOME]
    files += [(file, folder / str(file)[1:]) for file in sorted(_CERTIFICATES.glob("*.crt"))]
    files += [
        (file, folder / str(file)[1:]) for file in sorted(Path("/etc/apt/apt.conf.d").glob("*")) if _is_of_network(file)
    ]
    for file, target in files:
        if file.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    _run(["chroot", str(folder), "update-ca-certificates"])


def _is_of_network(file: Path) -> bool:
    """Whether a file of apt's settings says how to get packages, and not what else to do with them."""
    return "Acquire::" in file.read_text("utf-8", "replace")


def _variables() -> dict[str, str]:
    """The variables that say how packages are reached; not those that name a file which is here alone."""
    return {
        name: value
        for name, value in os.environ.items()
        if (name.lower().startswith(_OF_CLIENTS) or name.lower() in _PROXIES)
        and (not value.startswith("/") or value.startswith("/etc/ssl/"))
    }


def _make_alone(folder: Path) -> None:
    """Make a folder with links to the programs of a few packages; `python3` is what there is, whatever its version."""
    alone = folder / "alone"
    alone.mkdir()
    for package in _ALONE:
        listed = subprocess.run(["chroot", str(folder), "dpkg", "-L", package], capture_output=True, text=True)
        for name in listed.stdout.splitlines():
            file = Path(name)
            if str(file.parent) in ("/bin", "/usr/bin") and not (alone / file.name).is_symlink():
                (alone / file.name).symlink_to(file)
    for name, target in (("awk", "mawk"), ("sh", "dash")):
        if not (alone / name).is_symlink():
            (alone / name).symlink_to(f"/usr/bin/{target}")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stdout[-2000:]}")
