# What the pet game shows itself with: its own Vulkan, renderer, window and overlay. Included by CMakeLists.txt, which links pet_view.

imprint_require_header(IMPRINT_GLFW_INCLUDE GLFW/glfw3.h libglfw3-dev)
imprint_require_header(IMPRINT_IMGUI_INCLUDE imgui.h libimgui-dev PATH_SUFFIXES imgui)
imprint_require_header(IMPRINT_STB_INCLUDE stb_image_write.h libstb-dev PATH_SUFFIXES stb)
find_library(IMPRINT_GLFW_LIBRARY glfw REQUIRED)
find_library(IMPRINT_IMGUI_LIBRARY imgui REQUIRED)
# Dear ImGui's Vulkan back end as packaged calls the loader's own functions, so the game links the loader, as most games do.
find_library(IMPRINT_VULKAN_LIBRARY vulkan REQUIRED)

add_library(pet_view STATIC
  vulkan_host.cpp)
imprint_defaults(pet_view)
target_include_directories(pet_view PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/plugin/include)
target_include_directories(pet_view SYSTEM PUBLIC ${IMPRINT_VULKAN_INCLUDE})
target_link_libraries(pet_view PUBLIC ${IMPRINT_VULKAN_LIBRARY})
