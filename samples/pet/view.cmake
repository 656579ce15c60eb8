# What the pet game shows itself with: its own Vulkan, renderer, window and overlay. Included by CMakeLists.txt, which links pet_view.

imprint_require_header(IMPRINT_GLFW_INCLUDE GLFW/glfw3.h libglfw3-dev)
imprint_require_header(IMPRINT_IMGUI_INCLUDE imgui.h libimgui-dev PATH_SUFFIXES imgui)
imprint_require_header(IMPRINT_STB_INCLUDE stb_image_write.h libstb-dev PATH_SUFFIXES stb)
find_library(IMPRINT_GLFW_LIBRARY glfw REQUIRED)
find_library(IMPRINT_IMGUI_LIBRARY imgui REQUIRED)
find_library(IMPRINT_STB_LIBRARY stb REQUIRED)  # Dear ImGui as packaged reads fonts with it
# Dear ImGui's Vulkan back end as packaged calls the loader's own functions, so the game links the loader, as most games do.
find_library(IMPRINT_VULKAN_LIBRARY vulkan REQUIRED)
find_program(IMPRINT_GLSLANG_VALIDATOR glslangValidator REQUIRED)

# Shaders become headers in the build tree: lit.frag -> shaders/lit_frag.h with the array lit_frag.
set(pet_shader_headers)
foreach(shader lit.vert lit.frag shadow.vert mark.vert mark.frag sky.vert sky.frag)
  string(REPLACE "." "_" name ${shader})
  set(source ${CMAKE_CURRENT_LIST_DIR}/shaders/${shader})
  set(header ${CMAKE_CURRENT_BINARY_DIR}/view/shaders/${name}.h)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/view/shaders
    COMMAND ${IMPRINT_GLSLANG_VALIDATOR} --quiet --target-env vulkan1.1 -V -I${CMAKE_CURRENT_LIST_DIR}/shaders --vn ${name} -o ${header} --depfile ${header}.d ${source}
    DEPENDS ${source}
    DEPFILE ${header}.d
    COMMENT "Compiling shader ${shader}"
    VERBATIM)
  list(APPEND pet_shader_headers ${header})
endforeach()

add_library(pet_view STATIC
  camera.cpp
  mesh.cpp
  mesh_pet.cpp
  mesh_player.cpp
  mesh_sculpt.cpp
  mesh_yard.cpp
  overlay.cpp
  overlay_bubbles.cpp
  overlay_cards.cpp
  overlay_draw.cpp
  overlay_text.cpp
  pad.cpp
  picture.cpp
  renderer.cpp
  renderer_setup.cpp
  scene_view.cpp
  scene_view_pet.cpp
  sheet.cpp
  sheet_paint.cpp
  stage.cpp
  stage_input.cpp
  vulkan_host.cpp
  vulkan_host_memory.cpp
  window.cpp
  ${pet_shader_headers})
imprint_defaults(pet_view)
target_include_directories(pet_view
  PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/plugin/include
  PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/view)
target_include_directories(pet_view SYSTEM
  PUBLIC ${IMPRINT_VULKAN_INCLUDE}
  PRIVATE ${IMPRINT_GLFW_INCLUDE} ${IMPRINT_IMGUI_INCLUDE} ${IMPRINT_IMGUI_INCLUDE}/backends ${IMPRINT_STB_INCLUDE})
target_link_libraries(pet_view PUBLIC pet_world ${IMPRINT_IMGUI_LIBRARY} ${IMPRINT_GLFW_LIBRARY} ${IMPRINT_VULKAN_LIBRARY} ${IMPRINT_STB_LIBRARY})
