// Finds the COUNT elements of each line that come first in the order of a sort, and sorts them: one workgroup
// of 256 per line. Digits of eight bits, from the highest, narrow down the last key that is taken; where more
// elements have that key than are wanted, digits of the position decide. SIZE: COUNT rounded up to a power of
// two. KEEPS 1: each invocation keeps the keys of its elements.

const int kCopies = 8;  // neighbours count in different banks
shared uint counts[256 * kCopies];
shared uint totals[256];
shared uint part_totals[16];
shared uint keys[SIZE];
shared int positions[SIZE];
shared uint chosen_digit, left_before, found;

const int kRounds = (LENGTH + 255) / 256;
#if KEEPS == 1
uint kept[kRounds];
uint key_of(int start, int turn, int i) { return kept[turn]; }
#else
uint key_of(int start, int turn, int i) { return sort_key(imp_load_0(start + i)); }
#endif

// Among the elements whose `word` (0: key, 1: position) agrees with `chosen` above shift + 8 bits, finds the
// digit that holds number `wanted`, from 1. Sets chosen_digit, left_before (how many have smaller digits),
// and found (how many have this one).
void count_digits(int lane, int start, int word, uint key, uint chosen, int shift, uint wanted) {
  for (int k = lane; k < 256 * kCopies; k += 256) counts[k] = 0u;
  barrier();
  for (int turn = 0; turn < kRounds; ++turn) {
    int i = turn * 256 + lane;
    if (i >= LENGTH) break;
    uint own = key_of(start, turn, i);
    uint value = word == 0 ? own : uint(i);
    bool agrees = word == 0 || own == key;
    if (agrees && (shift == 24 || value >> (shift + 8) == chosen >> (shift + 8)))
      atomicAdd(counts[int((value >> shift) & 255u) * kCopies + lane % kCopies], 1u);
  }
  barrier();
  uint own = 0u;
  for (int k = 0; k < kCopies; ++k) own += counts[lane * kCopies + (k + lane) % kCopies];
  totals[lane] = own;
  barrier();
  uint before = 0u;
  for (int k = lane / 16 * 16; k < lane; ++k) before += totals[k];
  if (lane % 16 == 15) part_totals[lane / 16] = before + own;
  barrier();
  for (int k = 0; k < lane / 16; ++k) before += part_totals[k];
  if (before < wanted && wanted <= before + own) {
    chosen_digit = uint(lane);
    left_before = before;
    found = own;
  }
  barrier();
}

void imp_page(int group) {
  int lane = int(gl_LocalInvocationID.x);
  int start = group * LENGTH;
#if KEEPS == 1
  for (int turn = 0; turn < kRounds; ++turn) {
    int i = turn * 256 + lane;
    kept[turn] = i < LENGTH ? sort_key(imp_load_0(start + i)) : 0u;
  }
#endif
  uint last_key = 0u, last_position = 0xffffffffu, wanted = uint(COUNT);
  for (int shift = 24; shift >= 0; shift -= 8) {
    count_digits(lane, start, 0, 0u, last_key, shift, wanted);
    last_key |= chosen_digit << shift;
    wanted -= left_before;
    bool takes_all = found == wanted;
    barrier();
    if (takes_all) {  // whatever their further digits
      last_key |= (1u << shift) - 1u;
      break;
    }
  }
  bool has_ties = found > wanted;  // more elements have the last key than are wanted
  barrier();
  if (has_ties) {
    last_position = 0u;
    for (int shift = 24; shift >= 0; shift -= 8) {
      count_digits(lane, start, 1, last_key, last_position, shift, wanted);
      last_position |= chosen_digit << shift;
      wanted -= left_before;
      barrier();
    }
  }
  // Any order: the sort by key and position that follows is unique.
  for (int k = lane; k < SIZE; k += 256) {
    keys[k] = 0xffffffffu;
    positions[k] = 0x7fffffff;
  }
  if (lane == 0) found = 0u;
  barrier();
  for (int turn = 0; turn < kRounds; ++turn) {
    int i = turn * 256 + lane;
    if (i >= LENGTH) break;
    uint own = key_of(start, turn, i);
    if (own < last_key || (own == last_key && uint(i) <= last_position)) {
      int place = int(atomicAdd(found, 1u));
      keys[place] = own;
      positions[place] = i;
    }
  }
  barrier();
#if COUNT <= 128
  // Several invocations count together what comes before each element.
  const int kSharers = 256 / SIZE;
  int element = lane % SIZE, share = (COUNT + kSharers - 1) / kSharers;
  if (lane < COUNT) counts[lane] = 0u;
  barrier();
  if (element < COUNT) {
    uint own = keys[element], place = 0u;
    int position = positions[element], first = lane / SIZE * share;
    for (int k = first; k < min(first + share, COUNT); ++k)
      place += keys[k] < own || (keys[k] == own && positions[k] < position) ? 1u : 0u;
    atomicAdd(counts[element], place);
  }
  barrier();
  if (lane < COUNT) imp_store_0(group * COUNT + int(counts[lane]), positions[lane]);
#else
  for (int run = 2; run <= SIZE; run <<= 1)
    for (int distance = run / 2; distance > 0; distance >>= 1) {
      for (int pair = lane; pair < SIZE / 2; pair += 256) {
        int a = pair / distance * distance * 2 + pair % distance, b = a + distance;
        uint key_a = keys[a], key_b = keys[b];
        int position_a = positions[a], position_b = positions[b];
        bool is_after = key_a > key_b || (key_a == key_b && position_a > position_b);
        if (is_after == ((a & run) == 0)) {
          keys[a] = key_b;
          keys[b] = key_a;
          positions[a] = position_b;
          positions[b] = position_a;
        }
      }
      barrier();
    }
  for (int k = lane; k < COUNT; k += 256) imp_store_0(group * COUNT + k, positions[k]);
#endif
}
