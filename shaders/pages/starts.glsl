// Where the sorted keys of at least each number 0 .. COUNT begin among LENGTH keys.

void imp_page(int group) {
  int number = group * imp_group_size + int(gl_LocalInvocationID.x);
  if (number > COUNT) return;
  int low = 0, high = LENGTH;
  while (low < high) {
    int middle = (low + high) / 2;
    if (imp_load_0(middle) < number)
      low = middle + 1;
    else
      high = middle;
  }
  imp_store_0(number, low);
}
