/* Qt itself. */
#pragma once

#include <QGuiApplication>
#include <QVulkanInstance>
