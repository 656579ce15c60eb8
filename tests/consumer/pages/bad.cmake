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
file(WRITE ${OUT}/compute/a.cpp "// It runs in the
// place of another. // Not a second comment.
int anew = ours ? 'a' : 1'000;  // of ours
const char* text = \"for \"
                   \"want of it\";
int so; /*
 * What it is,
 * and who asks for it is to be seen. */ int many;
auto raw = R\"x(\"
no \" end, so many)x\";
// Identifiers: \"so\" and
int many_more;
")
file(WRITE ${OUT}/tools/a.cmake "# a cause, but
# for no reason
message(\"done anew\")  # once a frame is fine as a clause; so are three bytes a row not
")
file(WRITE ${OUT}/tools/run "#!/bin/sh\necho done by somebody\n")
file(WRITE ${OUT}/tools/LICENSE "done anew\n")
file(WRITE ${OUT}/build/a.cpp "// done anew\n")
execute_process(COMMAND ${PAGES} check ${OUT} RESULT_VARIABLE status ERROR_VARIABLE errors)
set(expected
  "README.md:152: found a link to none.md" "README.md:152: found a link to #nowhere" "README.md:152: found 152 lines" "a.md:2: found \"the processor\""
  "a.md:3: found code without a marker" "a.md:7: found snippet orphan" "a.md:14: found a program of library 'other'" "a.md:14: found the name twin again"
  "a.h:1: found \"anew\"" "a.cpp:1: found \"in the place of\"" "a.cpp:3: found \"ours\"" "a.cpp:4: found \"for want of\"" "a.cpp:7: found \"What\""
  "a.cpp:8: found \"is to be\"" "a.cpp:10: found \"so many\"" "a.cmake:1: found \"but for\"" "a.cmake:3: found \"anew\"" "a.cmake:3: found \"bytes a row\""
  "run:2: found \"somebody\"" "plugin/docs/loop.svg:1: found an older generated part" "none.json: found no measurements")
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
