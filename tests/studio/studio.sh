#!/usr/bin/env bash
# studio.sh CASE IMPRINT GAME FOLDER [HOME]: one case of imprint studio with the game of cart_pole.cpp.
set -euo pipefail
which=$1 imprint=$2 game=$3 folder=$4 home=${5:-}
rm -rf "$folder"
mkdir -p "$folder"

# run NAME OPTION... : a run in FOLDER/NAME, its output in FOLDER/NAME.txt; its exit status in $status.
run() {
  local name=$1
  shift
  status=0
  "$imprint" studio --devices "${devices:-cpu}" --folder "$folder/$name" "$@" >"$folder/$name.txt" 2>&1 || status=$?
}
fail() {
  echo "$*"
  tail -n 20 "$folder"/*.txt
  exit 1
}
# says NAME TEXT: the run printed a line with this text.
says() { grep --quiet --fixed-strings -e "$2" "$folder/$1.txt" || fail "$1 does not say: $2"; }
ends_well() { [ "$status" -eq 0 ] || fail "$1 ended with status $status"; }

case "$which" in
  learns) # two games reach the score of one, and leave what a game needs
    run whole --games 2 --steps 60000 --checkpoint 10 "$game" --evaluate
    ends_well whole
    awk '/^greedy/ && $2 >= 475 {found = 1} END {exit !found}' "$folder/whole.txt" || fail "no checkpoint plays 475"
    [ -s "$folder/whole/final.brain" ] || fail "there is no final.brain"
    [ "$(wc -l <"$folder/whole/curve.csv")" -gt 50 ] || fail "curve.csv is short"
    says whole "steps of 2 games in"
    ;;
  resumes) # a run in two parts has the bits of a run in one; so has a second run
    for name in one two; do
      run "$name" --games 2 --steps 30000 --checkpoint 5 "$game"
      ends_well "$name"
    done
    run parts --games 2 --steps 15000 --checkpoint 5 "$game"
    ends_well parts
    run parts --games 2 --steps 30000 --checkpoint 5 "$game"
    ends_well parts
    says parts "resumes from checkpoint"
    cmp "$folder/one/final.brain" "$folder/two/final.brain"
    cmp "$folder/one/final.brain" "$folder/parts/final.brain"
    cut -d, -f1,2,4-6 "$folder/one/curve.csv" >"$folder/one.curve"
    cut -d, -f1,2,4-6 "$folder/parts/curve.csv" | cmp - "$folder/one.curve"
    # Another number of games goes on from the same weights.
    run parts --games 3 --steps 35000 --checkpoint 5 "$game"
    ends_well parts
    says parts "another number of games"
    ;;
  shares) # the same minibatches: two games learn, with the bits of a second run and of a run in two parts
    for name in one two; do
      run "$name" --share minibatches --games 2 --steps 20000 --checkpoint 5 "$game" --evaluate --rollout 256 --batch 32
      ends_well "$name"
    done
    awk '/^greedy/ && $2 >= 475 {found = 1} END {exit !found}' "$folder/one.txt" || fail "no checkpoint plays 475"
    run parts --share minibatches --games 2 --steps 8000 --checkpoint 5 "$game" --rollout 256 --batch 32
    ends_well parts
    run parts --share minibatches --games 2 --steps 20000 --checkpoint 5 "$game" --rollout 256 --batch 32
    ends_well parts
    cmp "$folder/one/final.brain" "$folder/two/final.brain"
    cmp "$folder/one/final.brain" "$folder/parts/final.brain"
    ;;
  shares-gpu) # the same minibatches on a Vulkan device, with the bits of a second run
    for name in one two; do
      devices=${IMPRINT_TEST_DEVICE:-0} run "$name" --share minibatches --games 2 --steps 3000 --checkpoint 2 "$game" --rollout 256 --batch 32
      ends_well "$name"
    done
    [ "$(wc -l <"$folder/one/curve.csv")" -gt 5 ] || fail "curve.csv is short"
    cmp "$folder/one/final.brain" "$folder/two/final.brain"
    ;;
  lessons) # a curriculum that moves on, evaluation games apart, and a resumed run with the same bits
    echo '{"parameters": {"lean": {"uniform": [-0.05, 0.05]}},
           "lessons": [{"name": "upright", "parameters": {"lean": 0}, "score": 40, "episodes": 20},
                       {"name": "leaning"}]}' >"$folder/lessons.json"
    options=(--games 3 --evaluators 1 --curriculum "$folder/lessons.json" --checkpoint 5 --report 0.2)
    run whole "${options[@]}" --steps 20000 "$game"
    ends_well whole
    says whole "lesson upright"
    says whole "lesson leaning"
    says whole "; evaluated"
    says whole "of 2 games in"
    run parts "${options[@]}" --steps 10000 "$game"
    ends_well parts
    run parts "${options[@]}" --steps 20000 "$game"
    ends_well parts
    cmp "$folder/whole/final.brain" "$folder/parts/final.brain"
    echo '{"parameters": {"lean": {"uniform": [1]}}}' >"$folder/wrong.json"
    run wrong --games 2 --steps 100 --curriculum "$folder/wrong.json" "$game"
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says wrong "parameters.lean: found [1], expected two numbers"
    ;;
  searches) # trials of a rate: the absurd one loses, and the best brain is there; the way to share is measured
    echo '{"--rate": {"grid": [0.001, 1]}}' >"$folder/search.json"
    run grid --search "$folder/search.json" --how grid --parallel 2 --games 1 --steps 12000 "$game"
    ends_well grid
    says grid "round 1 of 1"
    says grid "best: trial 1"
    [ -s "$folder/grid/final.brain" ] || fail "there is no final.brain"
    [ "$(wc -l <"$folder/grid/search.csv")" -eq 3 ] || fail "search.csv has other rows than the trials"
    run half --search "$folder/search.json" --how halving --trials 4 --rounds 2 --games 1 --steps 6000 "$game"
    ends_well half
    says half "round 2 of 2"
    run people --search "$folder/search.json" --how population --trials 4 --rounds 2 --checkpoint 2 --games 1 --steps 6000 "$game"
    ends_well people
    says people "goes on from trial"
    run auto --share auto --games 2 --steps 3000 "$game"
    ends_well auto
    says auto "steps per second by minibatches"
    ;;
  comes-home) # the studio's brain in a shipped game with baked kernels: it plays at once, and learns on
    run whole --games 2 --steps 30000 --checkpoint 0 "$game"
    ends_well whole
    echo '{"name": "balance", "observation_count": 4, "branch_sizes": [2], "learner": "ppo"}' >"$folder/brain.json"
    "$imprint" bake --device "${IMPRINT_TEST_DEVICE:-0}" --agent "$folder/brain.json" --output "$folder/kernels" >"$folder/bake.txt" 2>&1 || fail "it cannot be baked"
    "$home" "$folder/whole/final.brain" "$folder/kernels" >"$folder/home.txt" 2>&1 || fail "it is not at home"
    ! grep --quiet "compiled instead" "$folder/home.txt" || fail "its kernels are not the baked ones"
    ! ldd "$home" | grep --ignore-case mpi || fail "the shipped game needs MPI"
    ;;
  refuses) # another network in one game: no restart helps
    run odd --games 2 --steps 5000 "$game" --odd-width 8
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says odd "rank 1: found"
    says odd "same imp_brain_desc"
    ! grep --quiet "Starts again" "$folder/odd.txt" || fail "it was started again"
    ;;
  hangs) # a game that hangs: the job starts again from the newest checkpoint
    run hung --games 2 --steps 20000 --checkpoint 3 --patience 3 "$game" --hang-rank 1 --hang-frame 10000
    ends_well hung
    says hung "Not arrived: rank 1 (process"
    says hung "resumes from checkpoint"
    run slow --games 2 --steps 4000 --report 0.1 "$game" --slow-ms 2
    ends_well slow
    says slow "slowest: rank 1"
    ;;
  *) fail "there is no case $which" ;;
esac
