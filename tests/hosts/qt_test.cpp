// Qt 6's QVulkanWindow: Qt owns device, swapchain and frames, and does not link libvulkan. The pet learns in
// startNextFrame, and Qt's grab() gives the same picture as without Imprint.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <QGuiApplication>
#include <QVersionNumber>
#include <QVulkanFunctions>
#include <QVulkanInstance>
#include <QVulkanWindow>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "tests/hosts/advice.h"
#include "tests/hosts/pupil.h"
#include "tests/hosts/scene.h"
#include "tests/hosts/watched_loader.h"

namespace imprint::hosts {
namespace {

constexpr std::uint64_t kMostFrames = 10000;
constexpr std::uint64_t kGrabEvery = 25;
constexpr std::uint64_t kUntimedFrames = 60;

// Instructions for the window's frames, and their results.
struct Play {
  bool teach = false;
  PupilOptions pupil;
  std::uint64_t frames = 0;  // 0: until the examination is over
  bool grab = true;
  std::vector<Place> places;  // of the pet: input without a pupil, output with one
  std::vector<QImage> pictures;
  std::vector<double> times_us;
  std::string faults;
  float success = 0;
  GuestCalls calls;
};

class Window : public QVulkanWindow {
 public:
  explicit Window(Play& play) : play_(play) {
    setEnabledFeaturesModifier([this](VkPhysicalDeviceFeatures& features) { features_.features = features; });
    connect(this, &QVulkanWindow::frameGrabbed,
            [this](const QImage& image) { play_.pictures.push_back(image.copy()); });
  }
  QVulkanWindowRenderer* createRenderer() override;

  imp_vk_device_info declare() {
    extensions_.clear();
    instance_extensions_ = vulkanInstance()->extensions();
    for (const QByteArray& name : instance_extensions_) extensions_.push_back(name.constData());
    imp_vk_device_info info = imp_vk_device_info_init();
    const auto load = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
        vulkanInstance()->getInstanceProcAddr("vkGetInstanceProcAddr"));
    info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(watch(load));
    info.instance = vulkanInstance()->vkInstance();
    info.physical_device = physicalDevice();
    info.device = device();
    info.api_version = VK_API_VERSION_1_1;
    info.instance_extension_count = static_cast<std::uint32_t>(extensions_.size());
    info.instance_extensions = extensions_.data();
    info.device_extension_count = 1;
    info.device_extensions = &kSwapchain;
    info.features = &features_;
    info.queue.family = graphicsQueueFamilyIndex();
    if (play_.pupil.submit)
      info.queue.queue = graphicsQueue(),
      info.queue.access = IMP_QUEUE_SINGLE_THREAD;  // the GUI thread is the only one that submits
    return info;
  }

 private:
  static constexpr const char* kSwapchain = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
  Play& play_;
  VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  QByteArrayList instance_extensions_;
  std::vector<const char*> extensions_;
};

class Renderer : public QVulkanWindowRenderer {
 public:
  Renderer(Window& window, Play& play) : window_(window), play_(play) {}

  void initResources() override {
    functions_ = window_.vulkanInstance()->deviceFunctions(window_.device());
    const auto load = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        window_.vulkanInstance()->getInstanceProcAddr("vkGetDeviceProcAddr"));
    scene_.make(load, window_.device(), window_.defaultRenderPass());
    guarded([this] {
      if (play_.teach) pupil_.emplace(window_.declare(), play_.pupil);
    });
  }

  // Qt has waited for the device, so the GPU has finished every frame.
  void releaseResources() override {
    guarded([this] {
      if (!pupil_) return;
      pupil_->close();
      play_.success = pupil_->success();
      play_.faults = faults(*pupil_);
      pupil_.reset();
      play_.calls = guest_calls();
    });
    scene_.destroy();
  }

  void startNextFrame() override {
    const auto now = std::chrono::steady_clock::now();
    if (frame_ > kUntimedFrames)
      play_.times_us.push_back(std::chrono::duration<double, std::micro>(now - last_).count());
    last_ = now;
    ++frame_;
    const VkCommandBuffer commands = window_.currentCommandBuffer();
    const QSize size = window_.swapChainImageSize();
    const VkExtent2D extent{static_cast<std::uint32_t>(size.width()),
                            static_cast<std::uint32_t>(size.height())};
    scene_.bind(commands, extent);
    guarded([&] {
      if (!pupil_) return;
      // Qt has waited for this command buffer before reusing it.
      const auto in_flight = static_cast<std::uint64_t>(window_.concurrentFrameCount());
      pupil_->begin(frame_, frame_ > in_flight ? frame_ - in_flight : 0);
      pupil_->send(commands);
      pupil_->end();
      play_.places.push_back(pupil_->place());
    });
    const bool over = failed_ || frame_ == kMostFrames ||
                      (play_.frames ? frame_ == play_.frames
                       : pupil_     ? pupil_->finished()
                                    : frame_ == play_.places.size());
    VkClearValue clear[2]{};
    clear[1].depthStencil = {1, 0};
    VkRenderPassBeginInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
    pass.renderPass = window_.defaultRenderPass();
    pass.framebuffer = window_.currentFramebuffer();
    pass.renderArea = {{0, 0}, extent};
    pass.clearValueCount = 2;
    pass.pClearValues = clear;
    functions_->vkCmdBeginRenderPass(commands, &pass, VK_SUBPASS_CONTENTS_INLINE);
    scene_.draw(commands, static_cast<float>(frame_) / 60,
                frame_ <= play_.places.size() ? play_.places[frame_ - 1] : Place{});
    functions_->vkCmdEndRenderPass(commands);
    window_.frameReady();
    if (over) {
      QMetaObject::invokeMethod(qApp, &QCoreApplication::quit, Qt::QueuedConnection);
    } else if (play_.grab && (frame_ + 1) % kGrabEvery == 0) {
      QMetaObject::invokeMethod(
          &window_, [this] { window_.grab(); }, Qt::QueuedConnection);  // starts the next frame
    } else {
      window_.requestUpdate();
    }
  }

 private:
  // Exceptions must not pass through Qt.
  template <class Work>
  void guarded(Work&& work) {
    if (failed_) return;
    try {
      work();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      failed_ = true;
    }
  }

  Window& window_;
  Play& play_;
  QVulkanDeviceFunctions* functions_ = nullptr;
  Scene scene_;
  std::optional<Pupil> pupil_;
  std::uint64_t frame_ = 0;
  std::chrono::steady_clock::time_point last_{};
  bool failed_ = false;
};

QVulkanWindowRenderer* Window::createRenderer() { return new Renderer(*this, play_); }

// The validation layer's messages by their names.
struct Messages {
  std::multiset<std::string> names;
  std::string first;

  static VKAPI_ATTR VkBool32 VKAPI_CALL note(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                             VkDebugUtilsMessageTypeFlagsEXT,
                                             const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
    auto& messages = *static_cast<Messages*>(user);
    if (is_explained(*data)) return VK_FALSE;
    messages.names.insert(data->pMessageIdName ? data->pMessageIdName : "");
    if (messages.first.empty()) messages.first = data->pMessage;
    return VK_FALSE;
  }
};

// Opens a window, plays, and closes it.
void run(Play& play, bool validation, Messages* messages) {
  QVulkanInstance instance;
  instance.setApiVersion(QVersionNumber(1, 1));
  instance.setFlags(QVulkanInstance::NoDebugOutputRedirect);
  if (validation) {
    instance.setLayers({"VK_LAYER_KHRONOS_validation"});
    instance.setExtensions({"VK_EXT_debug_utils"});
  }
  ASSERT_TRUE(instance.create()) << "Qt could not make a Vulkan instance, VkResult " << instance.errorCode();
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  if (validation) {
    ASSERT_TRUE(instance.layers().contains("VK_LAYER_KHRONOS_validation"))
        << "the validation layer is missing: install vulkan-validationlayers";
    VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    info.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    info.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    info.pfnUserCallback = &Messages::note;
    info.pUserData = messages;
    const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        instance.getInstanceProcAddr("vkCreateDebugUtilsMessengerEXT"));
    ASSERT_TRUE(create);
    ASSERT_EQ(create(instance.vkInstance(), &info, nullptr, &messenger), VK_SUCCESS);
  }
  {
    Window window(play);
    window.setVulkanInstance(&instance);
    window.resize(128, 128);
    window.show();
    QGuiApplication::exec();
  }
  if (messenger) {
    reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(instance.getInstanceProcAddr(
        "vkDestroyDebugUtilsMessengerEXT"))(instance.vkInstance(), messenger, nullptr);
  }
}

class T8QtHost : public testing::Test {
 protected:
  void SetUp() override {
    qputenv("QT_QPA_UPDATE_IDLE_TIME", "0");  // frames as fast as possible
    qputenv("QT_XCB_GL_INTEGRATION", "none");
    qputenv("VK_LAYER_ENABLES",
            "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT:VK_VALIDATION_FEATURE_ENABLE_BEST_"
            "PRACTICES_EXT");
    application_.emplace(count_, arguments_);
  }

 private:
  char name_[3] = "qt";
  char* arguments_[2] = {name_, nullptr};
  int count_ = 1;
  std::optional<QGuiApplication> application_;
};

class T4QtHost : public T8QtHost {};

void expect_same(bool submit) {
  Play with;
  with.teach = true;
  with.pupil.submit = submit;
  Messages said;
  run(with, true, &said);
  EXPECT_EQ(with.faults, "");
  EXPECT_EQ(with.calls.idle_waits, 0u);
  EXPECT_EQ(with.calls.queues, 0u);
  EXPECT_EQ(with.calls.timelines, 0u);
  std::printf("Qt 6, %s: %.0f %% of commands carried out after %.0f s of lessons, %zu frames\n",
              submit ? "own submits on the GUI thread" : "record", static_cast<double>(100 * with.success),
              with.pupil.seconds, with.places.size());
  Play without;
  without.places = with.places;
  Messages said_without;
  run(without, true, &said_without);
  EXPECT_EQ(said.names, said_without.names) << said.first;
  for (const std::string& name : said_without.names)
    EXPECT_TRUE(name.starts_with("UNASSIGNED-BestPractices-")) << "Qt's own: " << said_without.first;
  ASSERT_GT(with.pictures.size(), 10u);
  EXPECT_NE(with.pictures.front(), with.pictures.back());
  EXPECT_EQ(with.pictures, without.pictures);
}

TEST_F(T8QtHost, ThePetLearnsAndThePictureIsTheSame) { expect_same(false); }

TEST_F(T8QtHost, ThePetLearnsWithOwnSubmits) { expect_same(true); }

TEST_F(T4QtHost, DoesNotLinkTheVulkanLoader) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "vkCreateInstance"), nullptr);
  EXPECT_NE(dlsym(RTLD_DEFAULT, "imp_get_api"), nullptr);
}

TEST_F(T8QtHost, FramesTake) {
  std::string line = "Qt 6, record, microseconds per frame, mean, median and 95th percentile:";
  for (const char* what : {"without Imprint", "it infers", "it learns"}) {
    Play play;
    play.teach = what[0] == 'i';
    play.pupil.learning = what[3] == 'l';
    play.pupil.seconds = 0;
    play.frames = 300;
    play.grab = false;
    run(play, false, nullptr);
    ASSERT_GT(play.times_us.size(), 100u);
    std::vector<double>& times = play.times_us;
    std::ranges::sort(times);
    char text[128];
    std::snprintf(text, sizeof text, " %s %.0f / %.0f / %.0f;", what,
                  std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()),
                  times[times.size() / 2], times[times.size() * 95 / 100]);
    line += text;
  }
  std::printf("%s\n", line.c_str());
}

}  // namespace
}  // namespace imprint::hosts
