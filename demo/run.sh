#!/bin/bash
# The whole path, inside `yolo-slurm devcluster run`: a budget, a real training
# as a user who is not root, the debit, and sacct's word on it.
set -euo pipefail

user=nobody
as_user() { runuser -u "$user" -- "$@"; }
say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }

here=$(mktemp -d "${TMPDIR:-/tmp}/yolo-slurm-demo.XXXXXX")
trap 'rm -rf -- "$here"' EXIT
chown "$user" "$here"
cd "$here"

say sinfo
sinfo

say "yolo-slurm budget grant demo 2 --reason 'first training'"
yolo-slurm budget grant demo 2 --reason 'first training'

as_user yolo-train sample-data "$here/parts" --images 16 --size 96 >/dev/null
training=(data="$here/parts/data.yaml" model=yolov8n.yaml epochs=2 imgsz=64 batch=8 workers=0
    plots=False amp=False project="$here/runs")
say "yolo-sbatch --tokens 0.5 --gpus a100:1 --wait -- ${training[*]}   # as $user"
as_user yolo-sbatch --tokens 0.5 --gpus a100:1 --wait --output="$here/job.log" -- "${training[@]}" |
    tee submitted || {
    cat job.log
    exit 1
}
job=$(grep -oE '[0-9]+' submitted)
grep '^yolo-train:' job.log

# The hook told the settler; its debit follows within a second or two.
for _ in $(seq 100); do
    yolo-slurm budget history demo --json >history.json
    grep -q '"debit"' history.json && break
    sleep 0.1
done

say yolo-slurm balance demo "  # as $user"
as_user yolo-slurm balance demo

say "yolo-slurm usage --by project,user,type   # as $user"
XDG_CACHE_HOME="$here/.cache" as_user yolo-slurm usage --by project,user,type

say yolo-slurm budget history demo
yolo-slurm budget history demo

say "sacct -X -j $job -o JobID,User,State,ElapsedRaw,AllocTRES%60"
sacct -X -j "$job" -o JobID,User,State,ElapsedRaw,AllocTRES%60

python - "$job" "$(sacct -X -n -P -j "$job" -o ElapsedRaw)" \
    "$(sacct -X -n -P -j "$job" -o AllocTRES)" <<'PYTHON'
import json
import re
import sys

job, elapsed, tres = sys.argv[1:]
gpus = int(re.search(r"gres/gpu=(\d+)", tres)[1])
with open("history.json") as history:
    units = sum(int(e["units"]) for e in json.load(history) if e["kind"] == "debit")
debited = -units / 1_000_000
used = int(elapsed) * gpus
print(f"\nsacct: {elapsed} s × {gpus} GPU = {used} GPU-seconds; the ledger: {debited:g}; "
      f"difference: {used - debited:g}")
sys.exit(used != debited)
PYTHON
