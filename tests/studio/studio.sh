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
# mean_of_half CURVE SCORE: the episodes of the second half of the run reach the mean score. Actors play as they like, so
# that two runs differ, and a single stretch may be a bad one.
mean_of_half() {
  awk -F, -v wanted="$2" 'NR > 1 {row[NR] = $0; last = $2} END {for (i in row) {split(row[i], c, ","); if (c[2] > 0.5 * last) {sum += c[4] * c[5]; n += c[5]}}
    print "mean of the second half: " sum / n; exit !(n > 0 && sum / n >= wanted)}' "$1" || fail "$1: expected $2"
}
ends_well() { [ "$status" -eq 0 ] || fail "$1 ended with status $status"; }

case "$which" in
  learns) # two games reach the score of one, and leave what a game needs
    run whole --games 2 --steps 60000 --checkpoint 10 "$game" --evaluate
    ends_well whole
    awk '/^greedy/ && $2 >= 475 {found = 1} END {exit !found}' "$folder/whole.txt" || fail "no checkpoint plays 475"
    [ -s "$folder/whole/final.brain" ] || fail "there is no final.brain"
    [ "$(wc -l <"$folder/whole/curve.csv")" -gt 50 ] || fail "curve.csv is short"
    for tag in score loss learner/entropy; do
      grep --quiet --binary-files=text --fixed-strings "$tag" "$folder/whole/events.out.tfevents.studio" || fail "TensorBoard's file lacks $tag"
    done
    grep --quiet "([0-9]* %, [0-9:]* left)" "$folder/whole.txt" || fail "the report does not say how much is left"
    says whole "steps of 2 games in"
    ;;
  resumes) # a second run, in two parts, has the bits of a run in one
    run one --games 2 --steps 30000 --checkpoint 5 "$game"
    ends_well one
    run parts --games 2 --steps 15000 --checkpoint 5 "$game"
    ends_well parts
    run parts --games 2 --steps 30000 --checkpoint 5 "$game"
    ends_well parts
    says parts "resumes from checkpoint"
    run parts --games 2 --steps 30000 --checkpoint 5 "$game"
    ends_well parts
    says parts "the run is done"
    cmp "$folder/one/final.brain" "$folder/parts/final.brain"
    cut -d, -f1,2,4-6 "$folder/one/curve.csv" >"$folder/one.curve"
    cut -d, -f1,2,4-6 "$folder/parts/curve.csv" | cmp - "$folder/one.curve"
    # Another number of games goes on from the same weights.
    run parts --games 3 --steps 35000 --checkpoint 5 "$game"
    ends_well parts
    says parts "another number of games"
    run parts --games 1 --steps 38000 --checkpoint 5 "$game" --rate 0.0009
    ends_well parts
    says parts "goes on with other options: --rate 0.0009 instead of nothing"
    # Each exchange counts what its own games decided, 512 and at times some more, and not those of before.
    awk -F, 'NR > 2 {d = $2 - before; if (d < 512 || d > 3 * 520) {print "exchange " $1 ": " d " steps"; bad = 1}} {before = $2}
      END {exit bad || before < 38000 || before > 38600}' "$folder/parts/curve.csv" || fail "the steps are not counted on"
    # A damaged checkpoint: the one before, in all games.
    newest=$(sed -n 's/^checkpoint //p' "$folder/parts/checkpoint")
    printf damaged | dd of="$folder/parts/checkpoints/$newest/rank-0.brain" bs=1 seek=1000 conv=notrunc 2>/dev/null
    "$imprint" studio --devices cpu --folder "$folder/parts" --games 2 --steps 100000000 --checkpoint 1000 --report 0.1 "$game" >"$folder/parts.txt" 2>&1 &
    runs=$!
    for _ in $(seq 500); do ! grep --quiet "^exchange" "$folder/parts.txt" || break; sleep 0.02; done
    says parts "takes checkpoint $((newest - 1)) instead of $newest"
    # The first signal ends it with a checkpoint of its last exchange.
    kill -TERM "$runs"
    ! wait "$runs" || fail "a stopped run ended as if it were done"
    says parts "The same command goes on from a checkpoint of its end"
    tail -1 "$folder/parts/curve.csv" | cut -d, -f1,2 >"$folder/parts.last"
    sed -n 's/^exchanges //p; s/^steps //p' "$folder/parts/checkpoint" | paste -sd, | cmp - "$folder/parts.last"
    ;;
  shares) # the same minibatches: two games learn, and a second run, in two parts, has the same bits
    run one --share minibatches --games 2 --steps 20000 --checkpoint 5 "$game" --evaluate --rollout 256 --batch 32
    ends_well one
    awk '/^greedy/ && $2 >= 475 {found = 1} END {exit !found}' "$folder/one.txt" || fail "no checkpoint plays 475"
    run parts --share minibatches --games 2 --steps 7600 --checkpoint 5 "$game" --rollout 256 --batch 32
    ends_well parts
    run parts --share minibatches --games 2 --steps 20000 --checkpoint 5 "$game" --rollout 256 --batch 32
    ends_well parts
    cmp "$folder/one/final.brain" "$folder/parts/final.brain"
    # Gradients of half the bytes: other bits, equal learning.
    run half --share minibatches --compress --games 2 --steps 4100 --checkpoint 0 "$game" --rollout 256 --batch 32
    ends_well half
    mean_of_half "$folder/half/curve.csv" 40
    ! cut -d, -f1,2,4-6 "$folder/half/curve.csv" | tail -1 | grep --quiet --file=- "$folder/one/curve.csv" || fail "nothing was compressed"
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
    options=(--games 3 --evaluators 1 --curriculum "$folder/lessons.json" --checkpoint 5)
    run whole "${options[@]}" --steps 20000 "$game"
    ends_well whole
    says whole "lesson leaning"
    says whole "of 2 games in"
    # Reports come by time; each exchange is a row of the curve.
    grep -q ",upright$" "$folder/whole/curve.csv" || fail "curve.csv lacks the first lesson"
    run parts "${options[@]}" --steps 10000 "$game"
    ends_well parts
    run parts "${options[@]}" --steps 20000 "$game"
    ends_well parts
    cmp "$folder/whole/final.brain" "$folder/parts/final.brain"
    # A busy computer may leave an evaluator no time beside a short run: the run goes on.
    for _ in 1 2 3 4 5 6; do
      rm -rf "$folder/evaluated"
      run evaluated "${options[@]}" --seconds 2 "$game"
      ends_well evaluated
      evaluations=$(awk -F, '{ sum += $10 } END { print sum + 0 }' "$folder/evaluated/curve.csv")
      [ "$evaluations" -eq 0 ] || break
    done
    [ "$evaluations" -gt 0 ] || fail "curve.csv has no evaluations"
    echo '{"parameters": {"lean": {"uniform": [1]}}}' >"$folder/wrong.json"
    run wrong --games 2 --steps 100 --curriculum "$folder/wrong.json" "$game"
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says wrong "parameters.lean: found [1], expected two numbers"
    ! grep --quiet "rank" "$folder/wrong.txt" || fail "games were started with a wrong file"
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
    for way in actors updates minibatches; do
      grep --quiet "tries $way: [1-9][0-9]* steps per second" "$folder/auto.txt" || fail "a way to share failed"
    done
    run memory --share auto --games 2 --steps 1000 --every 20 "$game" --learner dqn
    ends_well memory
    grep --quiet "tries actors: [1-9][0-9]* steps per second" "$folder/memory.txt" || fail "actors of DQN failed"
    run stuck --share auto --games 2 --steps 3000 "$game" --hang-share minibatches
    ends_well stuck
    says stuck "tries minibatches: given up after"
    # The end of a search is that of its trials.
    echo '{"--rate": {"grid": [0.001]}}' >"$folder/one.json"
    "$imprint" studio --devices cpu --folder "$folder/ended" --search "$folder/one.json" --how grid --games 1 --steps 100000000 "$game" >"$folder/ended.txt" 2>&1 &
    search=$!
    for _ in $(seq 500); do [ ! -s "$folder/ended/trial-1/alive/0" ] || break; sleep 0.02; done
    trial=$(od --address-radix=n --format=u4 --skip-bytes=12 --read-bytes=4 "$folder/ended/trial-1/alive/0" | tr -d ' ')
    kill -0 "$trial" || fail "there is no trial to end"
    kill -TERM "$search"
    for _ in $(seq 500); do kill -0 "$trial" 2>/dev/null || break; sleep 0.02; done
    ! kill -0 "$trial" 2>/dev/null || fail "a trial goes on without its search"
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
  actors) # a learner and actors apart: PPO by V-trace while an actor is killed, and DQN by a shared memory
    "$imprint" studio --devices cpu --folder "$folder/ppo" --share actors --games 3 --steps 60000 --report 0.2 "$game" >"$folder/ppo.txt" 2>&1 &
    studio=$!
    victim=
    while [ -z "$victim" ] && kill -0 "$studio" 2>/dev/null; do
      sleep 0.02
      victim=$(sed -n 's/.*: actor 1 (process \([0-9]*\) on .*) plays/\1/p' "$folder/ppo.txt" | head -1)
    done
    kill -KILL "$victim" || fail "there was no actor to kill"
    status=0
    wait "$studio" || status=$?
    ends_well ppo
    says ppo "actor 1 (process $victim) was ended by signal 9. It starts again; the run goes on."
    says ppo "; the run goes on"
    says ppo "steps of 2 games in"
    ! grep --quiet "Starts again" "$folder/ppo.txt" || fail "the learner was started again"
    mean_of_half "$folder/ppo/curve.csv" 80  # about 20 without learning
    [ -s "$folder/ppo/final.brain" ] || fail "there is no final.brain"
    # Status 0 before the learner's word is no end of an actor.
    run left --share actors --games 2 --steps 100000000 --restarts 1 "$game" --exit-frame 600 --exit-status 0
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says left ") ended with status 0 before the run was over. It starts again"
    says left "no actor is left"
    run dqn --share actors --games 3 --evaluators 1 --replay-ratio 2 --steps 2500 --checkpoint 0 --report 0.2 "$game" --learner dqn
    ends_well dqn
    says dqn "    evaluated"
    awk -F, 'NR > 1 && $9 > best {best = $9} END {print "best evaluation: " best; exit !(best >= 50)}' "$folder/dqn/curve.csv" || fail "no evaluation reaches 50"
    ;;
  pet-comes-home) # 16 yards with scripted teachers, then players' pets that know their tricks and learn another
    # 8,000 steps fill the memory: a new word is one sample of 4,096.
    run yards --games 16 --share actors --steps 8000 --checkpoint 0 "$game" --tricks sit,spin,come,fetch
    ends_well yards
    grep --quiet "done: 8[0-9]* steps of 15 games" "$folder/yards.txt" || fail "the yards' steps are not counted"
    "$home" "$folder/yards/final.brain" --homes 4 >"$folder/home.txt" 2>&1 || fail "it is not at home"
    cat "$folder/home.txt"
    ! ldd "$home" | grep --ignore-case mpi || fail "the shipped pet needs MPI"
    ;;
  league) # checkpoints become opponents of all ranks; the newest weights rise above the first; resumed with the same bits
    options=(--games 2 --checkpoint 5 --league 2)
    run whole "${options[@]}" --steps 5300 "$game"
    ends_well whole
    # Half of the matches are against entries, and the score rises from the first quarter of the run to the last.
    awk -F, '/^newest/ {newest = $2} /brain,/ && NR > 1 {++entries; matches += $3} END {print entries " entries, " matches " matches, newest " newest
      exit !(entries >= 3 && matches > 1000 && matches < 6000)}' "$folder/whole/league.csv" || fail "the league is wrong"
    awk -F, 'NR > 1 {row[NR] = $0; last = $2} END {for (i in row) {split(row[i], c, ","); if (c[2] < last / 4) {a += c[4] * c[5]; n += c[5]} if (c[2] > last * 0.75) {b += c[4] * c[5]; m += c[5]}}
      print "mean score " a / n ", at last " b / m; exit !(b / m > a / n + 0.1)}' "$folder/whole/curve.csv" || fail "it learned nothing in its league"
    [ -s "$folder/whole/league/2.brain" ] || fail "an entry has no brain"
    run parts "${options[@]}" --steps 2500 "$game"  # to the end of exchange 20, a multiple of --checkpoint
    ends_well parts
    run parts "${options[@]}" --steps 5300 "$game"
    ends_well parts
    cmp "$folder/whole/final.brain" "$folder/parts/final.brain"
    cut -d, -f2- "$folder/whole/league.csv" >"$folder/whole.table"
    cut -d, -f2- "$folder/parts/league.csv" | cmp - "$folder/whole.table"
    run vain --games 2 --steps 600 --checkpoint 0 --record 1 "$game"
    says vain "rank 0 on"
    says vain "--record: the game began no episode, so none is recorded. Call Member::begin_episode for each."
    run none --games 2 --checkpoint 0 --league 2 --steps 100 "$game"
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says none "league: found no folder, no checkpoints"
    ;;
  replays) # a recorded episode is played again, step by step, in pictures; another game is found out
    run played --games 2 --steps 6000 --checkpoint 0 --record 20 "$game"
    ends_well played
    log=$(find "$folder/played/episodes" -name '1-0-*.episode' | sort | tail -1)
    [ -s "$log" ] || fail "there is no recorded episode of rank 1"
    run again --replay "$log" --pictures "$folder/pictures" "$game"
    ends_well again
    steps=$(sed -n 's/^replayed \([0-9]*\) steps of episode .* of rank 1, score .*, as logged; \1 pictures$/\1/p' "$folder/again.txt")
    [ "$(find "$folder/pictures" -name '*.png' | wc -l)" -eq "${steps:-0}" ] && [ "$steps" -gt 5 ] || fail "pictures and steps differ"
    run other --replay "$log" "$game" --odd-lean 0.01
    [ "$status" -ne 0 ] || fail "another game was not found out"
    says other "replay: step 0: found observation 2"
    printf x | dd of="$log" bs=1 seek=100 conv=notrunc 2>/dev/null
    run damaged --replay "$log" "$game"
    [ "$status" -ne 0 ] || fail "a damaged file was taken"
    says damaged "Name a file of a run's folder episodes"
    ;;
  faults) # NaN and a full disk are told by rank; the run with the full disk goes on
    run nan --games 2 --steps 5000 --restarts 0 --checkpoint 0 "$game" --nan-frame 600
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    grep --quiet "rank 1 on .* leaves before the run is over. Imprint's newest error: agent_observe.*found nan" "$folder/nan.txt" || fail "NaN is not told by rank"
    run exits --games 2 --steps 5000 --restarts 0 --checkpoint 0 "$game" --exit-frame 600
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    grep --quiet "rank 1 on .* leaves before the run is over: it called exit()" "$folder/exits.txt" || fail "exit() is not told by rank"
    # Such a status is no studio's: another start may help.
    run three --games 2 --steps 5000 --restarts 1 --checkpoint 0 "$game" --exit-frame 600 --exit-status 3
    says three "Starts again"
    run score --games 2 --steps 5000 --checkpoint 0 "$game" --nan-score
    ends_well score
    says score "score: found nan, expected a finite number"
    ! grep --quiet nan "$folder/score/curve.csv" || fail "the report counts nan"
    # Without room for memory that processes share, as in some containers; only root can make it so.
    if unshare --mount true 2>/dev/null; then
      status=0
      unshare --mount sh -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"' sh "$imprint" studio --devices cpu --folder "$folder/room" \
        --games 2 --steps 3000 "$game" >"$folder/room.txt" 2>&1 || status=$?
      ends_well room
      says room "/dev/shm: found 64 KiB free, expected"
    fi
    run full --games 2 --steps 8000 --checkpoint 2 "$game" --full-frame 3000
    ends_well full
    grep --quiet "rank 1 on .*File too large" "$folder/full.txt" || fail "the full disk is not told by rank"
    says full "stays the newest. Free some space"
    [ -s "$folder/full/final.brain" ] || fail "there is no final.brain"
    # mpirun names no rank; it is stopped here, so that it ends no other game before the tool has looked.
    "$imprint" studio --devices cpu --folder "$folder/killed" --games 2 --steps 100000000 --checkpoint 0 --restarts 0 --report 0.1 "$game" >"$folder/killed.txt" 2>&1 &
    runs=$!
    for _ in $(seq 500); do ! grep --quiet "^exchange" "$folder/killed.txt" || break; sleep 0.02; done
    sleep 0.5
    starter=$(pgrep --parent "$runs" mpirun)
    victim=$(od --address-radix=n --format=u4 --skip-bytes=12 --read-bytes=4 "$folder/killed/alive/1" | tr -d ' ')
    kill -STOP "$starter"
    kill -KILL "$victim"
    sleep 0.5
    kill -CONT "$starter"
    ! wait "$runs" || fail "a killed run ended well"
    says killed "a game was ended by signal 9. First to end: rank 1 (process $victim on "
    # However fast the games are: the run lasts until the hang is told, and some exchanges longer.
    "$imprint" studio --devices cpu --folder "$folder/hung" --share actors --games 3 --steps 100000000 --patience 3 --report 0.1 "$game" --hang-rank 1 --hang-frame 2000 >"$folder/hung.txt" 2>&1 &
    runs=$!
    for _ in $(seq 1000); do ! grep --quiet "hangs: no frame" "$folder/hung.txt" || break; sleep 0.02; done
    says hung "actor 0 (process"
    says hung "hangs: no frame in 3 s. It is ended."
    for _ in $(seq 500); do ! sed '1,/hangs: no frame/d' "$folder/hung.txt" | grep --quiet "^exchange" || break; sleep 0.02; done
    sed '1,/hangs: no frame/d' "$folder/hung.txt" | grep --quiet "^exchange" || fail "the run does not go on without the hung game"
    kill -TERM "$runs"
    ! wait "$runs" || fail "a stopped run ended as if it were done"
    ;;
  refuses) # another network in one game: no restart helps
    run whole --games 2 --steps 3000 --checkpoint 1 "$game"
    ends_well whole
    cp -r "$folder/whole" "$folder/before"
    run whole --games 2 --steps 9000 --checkpoint 1 "$game" --remember # a brain of another desc
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says whole "Or begin again in another --folder; this one stays as it is."
    diff --recursive --exclude=alive --exclude=command "$folder/before" "$folder/whole" || fail "a run of another brain changed the folder"
    run minus --games 2 --steps -3 "$game"
    says minus "--steps: found -3, expected a whole number of 0 or more"
    run seconds --games 2 --seconds nan "$game"
    says seconds "--seconds: found nan, expected seconds, 0 or more"
    run typo --gmaes 2 "$game"
    says typo "--gmaes: found an unknown option"
    run odd --games 2 --steps 5000 "$game" --odd-width 8
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says odd "rank 1: found"
    says odd "same imp_brain_desc"
    ! grep --quiet "Starts again" "$folder/odd.txt" || fail "it was started again"
    run apart --share actors --games 2 --steps 5000 "$game" --odd-width 8
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says apart "actor 0: found"
    says apart "same imp_brain_desc"
    (
      exec 9<"$folder/odd"
      flock 9
      run odd --games 2 --steps 5000 "$game"
      [ "$status" -eq 1 ]
    ) || fail "a second run took the folder"
    says odd "found another run in"
    ! IMPRINT_STUDIO_SHARE=minibatch "$game" >"$folder/words.txt" 2>&1 || fail "a word that is no way to share was taken"
    says words "IMPRINT_STUDIO_SHARE: found 'minibatch', expected updates, minibatches or actors"
    ! IMPRINT_STUDIO_STEPS=12k "$game" >"$folder/number.txt" 2>&1 || fail "a number with a letter was taken"
    says number "IMPRINT_STUDIO_STEPS: found '12k', expected a number"
    run wordless --games 2 --steps 5000 --mpirun-option=--no-such-option "$game" # mpirun refuses
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says wordless "before any game had joined the run"
    ! grep --quiet "Starts again" "$folder/wordless.txt" || fail "it was started again"
    ;;
  hangs) # a game that hangs: the job starts again from the newest checkpoint
    # A start that takes longer than --patience is not a game that hangs.
    printf '#!/bin/sh\nsleep 1.5\nexec mpirun "$@"\n' >"$folder/slow-mpirun"
    chmod +x "$folder/slow-mpirun"
    run late --games 1 --steps 1000 --patience 1 --restarts 2 --mpirun "$folder/slow-mpirun" "$game"
    ends_well late
    run hung --games 2 --steps 12000 --checkpoint 3 --patience 3 "$game" --hang-rank 1 --hang-frame 4000
    ends_well hung
    says hung "Not arrived: rank 1 (process"
    says hung "resumes from checkpoint"
    run idle --games 2 --steps 4000 --patience 2 --restarts 0 "$game" --idle
    [ "$status" -eq 1 ] || fail "status $status, expected 1"
    says idle "whose frames go on"
    says idle "see that their agents observe, act and get rewards"
    # A stopped process is named even within an exchange, where it has arrived. A checkpoint would allow one more start.
    "$imprint" studio --devices cpu --folder "$folder/stopped" --games 2 --steps 100000000 --checkpoint 0 --patience 2 --restarts 0 --report 0.1 "$game" >"$folder/stopped.txt" 2>&1 &
    runs=$!
    for _ in $(seq 500); do ! grep --quiet "^exchange" "$folder/stopped.txt" || break; sleep 0.02; done
    kill -STOP "$(od --address-radix=n --format=u4 --skip-bytes=12 --read-bytes=4 "$folder/stopped/alive/1" | tr -d ' ')"
    ! wait "$runs" || fail "a stopped process ended well"
    says stopped "rank 1 (process"
    run slow --games 2 --steps 4000 --report 0.1 "$game" --slow-ms 2
    ends_well slow
    says slow "slowest: rank 1"
    ;;
  *) fail "there is no case $which" ;;
esac
