// A Qt Quick window whose scene graph draws with Vulkan, through samples/adapters/qt_quick.h. A creature
// learns on the scene graph's thread while the window is resized, hidden and shown. Grabbed pictures are
// those without Imprint. Run with QSG_RENDER_LOOP=threaded and basic.

#include <gtest/gtest.h>
#include <QGuiApplication>
#include <QQuickItem>
#include <QQuickWindow>
#include <QSGSimpleRectNode>
#include <QThread>

#include <atomic>
#include <cstdio>
#include <memory>
#include <vector>

#include "samples/adapters/qt_quick.h"
#include "tests/hosts/creature.h"
#include "tests/hosts/qt_instance.h"

namespace imprint::hosts {
namespace {

class Box : public QQuickItem {
 public:
  explicit Box(QQuickItem* parent) : QQuickItem(parent) {
    setFlag(ItemHasContents);
    setSize({40, 30});
  }

 private:
  QSGNode* updatePaintNode(QSGNode* old, UpdatePaintNodeData*) override {
    auto* node = old ? static_cast<QSGSimpleRectNode*>(old) : new QSGSimpleRectNode;
    node->setRect(boundingRect());
    node->setColor(QColor(200, 80, 20));
    return node;
  }
};

struct Played {
  std::vector<QImage> pictures;
  std::set<std::string> messages;
  std::string first_message, failure;
  float success = 0;
  int closed = 0;           // scene graphs that were invalidated
  int contexts = 0;         // left open then
  bool own_thread = false;  // the scene graph has one
};

// Shows the window, resizes it, hides and shows it again; grabs a picture at each stage.
class Stage {
 public:
  explicit Stage(bool teach) {
    window_->setVulkanInstance(instance_.get());
    window_->setColor(Qt::darkBlue);
    window_->setPersistentGraphics(false);
    window_->setPersistentSceneGraph(false);
    window_->resize(160, 120);
    box_ = new Box(window_->contentItem());
    QObject::connect(window_.get(), &QQuickWindow::frameSwapped, window_.get(), &QQuickWindow::update);
    QObject::connect(
        window_.get(), &QQuickWindow::beforeRendering, window_.get(),
        [this] {
          ++frames_;
          played_.own_thread |= QThread::currentThread() != qApp->thread();
        },
        Qt::DirectConnection);
    if (teach) lend();
    QObject::connect(
        window_.get(), &QQuickWindow::sceneGraphInvalidated, window_.get(),
        [this] { ++closed_, played_.contexts += creature_.context ? 1 : 0; }, Qt::DirectConnection);
  }

  Played play() {
    if (!instance_.ok()) return {};
    window_->show();
    grab_after(300, 10);
    window_->resize(220, 140);
    grab_after(200, 50);
    window_->hide();
    if (played_.own_thread) wait([this] { return closed_ == 1; });  // the basic loop keeps its scene graph
    window_->show();
    grab_after(1500, 90);
    window_.reset();
    played_.closed = closed_;
    played_.success = creature_.meadow.success();
    played_.failure = creature_.failure;
    played_.messages = {instance_.messages().begin(), instance_.messages().end()};
    played_.first_message = instance_.first_message();
    return std::move(played_);
  }

 private:
  void lend() {
    // imprint: begin
    guest_ = std::make_unique<adapters::QtQuickGuest>(
        *window_, [this](const imp_vk_device_info& device) { return creature_.open(device); },
        [this](const imp_frame_info& now, VkCommandBuffer commands) { creature_.frame(now, commands); },
        [this] { (void)creature_.context.close(); });
    // imprint: end
  }

  template <class Condition>
  void wait(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && creature_.failure.empty() && std::chrono::steady_clock::now() < until)
      QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    EXPECT_TRUE(condition()) << creature_.failure;
  }
  void grab_after(std::uint64_t frames, double x) {
    const std::uint64_t until = frames_ + frames;
    wait([&] { return frames_ >= until; });
    box_->setX(x);
    played_.pictures.push_back(window_->grabWindow().convertToFormat(QImage::Format_RGBA8888));
  }

  QtInstance instance_;
  Played played_;
  Creature creature_;
  std::atomic<std::uint64_t> frames_{0};
  std::atomic<int> closed_{0};
  std::unique_ptr<adapters::QtQuickGuest> guest_;
  std::unique_ptr<QQuickWindow> window_ = std::make_unique<QQuickWindow>();
  Box* box_ = nullptr;  // the window's
};

TEST(T8QtQuickHost, ACreatureLearnsThroughResizeHideAndShowAndThePictureIsTheSame) {
  const Played with = Stage(true).play();
  EXPECT_EQ(with.failure, "");
  EXPECT_EQ(with.closed, with.own_thread ? 2 : 1);
  EXPECT_EQ(with.contexts, 0);
  EXPECT_EQ(with.own_thread, qgetenv("QSG_RENDER_LOOP") != "basic");
  EXPECT_GE(with.success, 0.9f);
  std::printf("Qt Quick, %s loop: %.0f %% of the last 100 steps led to the light\n",
              with.own_thread ? "threaded" : "basic", static_cast<double>(100 * with.success));
  const Played without = Stage(false).play();
  EXPECT_EQ(with.messages, without.messages) << with.first_message;
  ASSERT_EQ(with.pictures.size(), 3u);
  EXPECT_FALSE(with.pictures[0].isNull());
  EXPECT_NE(with.pictures[0], with.pictures[1]);
  EXPECT_EQ(with.pictures, without.pictures);
}

}  // namespace
}  // namespace imprint::hosts

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  qputenv("QT_QPA_UPDATE_IDLE_TIME", "0");
  qputenv("QT_XCB_GL_INTEGRATION", "none");
  qputenv("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT");
  QGuiApplication application(argc, argv);
  QQuickWindow::setGraphicsApi(QSGRendererInterface::Vulkan);
  return RUN_ALL_TESTS();
}
