#pragma once
#include <vsg/vk/Device.h>
