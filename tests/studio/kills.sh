#!/usr/bin/env bash
# kills.sh IMPRINT GAME FOLDER [KILLS [GAMES [STEPS]]]: a run whose random ranks are killed ends with the same
# brain, bit by bit, as one without kills, and leaves no process and no half-written file.
set -euo pipefail
imprint=$1 game=$2 folder=$3 kills=${4:-3} games=${5:-2} steps=${6:-150000}
rm -rf "$folder"
mkdir -p "$folder"
options=(--games "$games" --steps "$steps" --devices cpu --checkpoint 3 --report 0)

"$imprint" studio "${options[@]}" --folder "$folder/whole" "$game" >"$folder/whole.txt" 2>&1
# Game processes of this run, which name its folder in their environment.
ranks_of() {
  local process
  for process in $(pgrep --full "^$game" || true); do
    if { tr '\0' '\n' <"/proc/$process/environ"; } 2>/dev/null | grep --quiet "^IMPRINT_STUDIO_FOLDER=$folder/killed$"; then echo "$process"; fi
  done
}
newest() { sed -n 's/^exchanges //p' "$folder/killed/checkpoint" 2>/dev/null || true; }

"$imprint" studio "${options[@]}" --folder "$folder/killed" --restarts 1000 "$game" >"$folder/killed.txt" 2>&1 &
studio=$!
trap 'kill $studio 2>/dev/null || true' EXIT
killed=0
while [ "$killed" -lt "$kills" ] && kill -0 "$studio" 2>/dev/null; do
  sleep "0.$((RANDOM % 4))"
  mapfile -t ranks < <(ranks_of)
  [ "${#ranks[@]}" -eq "$games" ] || continue
  [ -e "$folder/killed/checkpoint" ] || continue
  if kill -KILL "${ranks[RANDOM % games]}" 2>/dev/null; then
    killed=$((killed + 1))
    for _ in $(seq 100); do mapfile -t ranks < <(ranks_of); [ "${#ranks[@]}" -lt "$games" ] && break; sleep 0.02; done
  fi
done
status=0
wait "$studio" || status=$?
trap - EXIT
[ "$status" -eq 0 ] || { tail -20 "$folder/killed.txt"; echo "the run with kills ended with status $status"; exit 1; }
[ "$killed" -ge "$kills" ] || { echo "the run was over after $killed of $kills kills"; exit 1; }
[ -z "$(ranks_of)" ] || { echo "processes are left: $(ranks_of)"; exit 1; }
[ -z "$(find "$folder/killed" -name '*.new' -o -name '*.part' -o -name '*.tmp')" ] || { echo "half-written files are left"; exit 1; }
cmp "$folder/whole/final.brain" "$folder/killed/final.brain"
echo "$killed kills, $(grep --count 'Starts again' "$folder/killed.txt") restarts, the same brain"
