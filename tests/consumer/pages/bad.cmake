# imprint_pages check names each fault of a bad page: cmake -D PAGES=imprint_pages -D OUT=folder -P bad.cmake
file(REMOVE_RECURSE ${OUT})
foreach(folder plugin/include plugin/docs compute/include tests/consumer/pages)
  file(MAKE_DIRECTORY ${OUT}/${folder})
endforeach()
string(REPEAT "a line\n" 150 lines)
file(WRITE ${OUT}/README.md "# A page\n${lines}[a](none.md) [b](#nowhere) [c](#a-page) `[d](code.md)`\n")
file(WRITE ${OUT}/plugin/docs/a.md "
It runs on the processor.
```cpp
int unmarked;
```
<!-- snippet: orphan -->
```c
int x;
```
<!-- program: twin plugin -->
```cpp
```
<!-- program: twin other -->
```cpp
```
<!-- shown: a fragment -->
```cpp
...
```
<!-- table: none.json | columns: gpu -->
<!-- end of table -->
")
file(WRITE ${OUT}/plugin/include/a.h "/* done anew */\n")
execute_process(COMMAND ${PAGES} check ${OUT} RESULT_VARIABLE status ERROR_VARIABLE errors)
set(expected
  "README.md:152: found a link to none.md" "README.md:152: found a link to #nowhere" "README.md:152: found 152 lines" "a.md:2: found \"the processor\""
  "a.md:3: found code without a marker" "a.md:7: found snippet orphan" "a.md:14: found a program of library 'other'" "a.md:14: found the name twin again"
  "a.h:1: found \"anew\"" "plugin/docs/loop.svg:1: found an older generated part" "none.json: found no measurements")
foreach(fault IN LISTS expected)
  string(FIND "${errors}" "${fault}" at)
  if(at EQUAL -1 OR NOT status EQUAL 1)
    message(FATAL_ERROR "expected status 1 and \"${fault}\", found ${status}:\n${errors}")
  endif()
endforeach()
string(REGEX MATCHALL "\n" found "${errors}")
list(LENGTH found count)
list(LENGTH expected wanted)
if(NOT count EQUAL wanted)
  message(FATAL_ERROR "expected ${wanted} faults, found:\n${errors}")
endif()
