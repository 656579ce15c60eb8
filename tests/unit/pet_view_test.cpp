// The pet game's pictures, as far as they need no device: shapes, the camera, the sheet.

#include <gtest/gtest.h>

#include <map>

#include "samples/pet/view/models/mesh_models.h"
#include "samples/pet/view/overlay/overlay_draw.h"
#include "samples/pet/view/render/camera.h"
#include "samples/pet/view/sheet.h"
#include "samples/pet/yard/world_view.h"

namespace pet {
namespace {

Vec3 normal_of(const Vertex& v) {
  return {static_cast<float>(v.normal[0]), static_cast<float>(v.normal[1]), static_cast<float>(v.normal[2])};
}

// Exactly one other triangle shares each side and runs along it the other way.
bool is_closed(const Mesh& mesh) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> sides;
  for (std::size_t i = 0; i < mesh.indices.size(); ++i) {
    const std::size_t next = i % 3 == 2 ? i - 2 : i + 1;
    ++sides[{mesh.indices[i], mesh.indices[next]}];
  }
  for (const auto& [side, count] : sides)
    if (count != 1 || sides.count({side.second, side.first}) != 1) return false;
  return true;
}

TEST(PetMesh, SculptedBallIsClosedRoundAndFacesOutwards) {
  const Mesh mesh = sculpt({ball({0.1f, 0.2f, 0.3f}, 0.5f, paint(0xff0000))}, 0.05f);
  ASSERT_FALSE(mesh.vertices.empty());
  EXPECT_TRUE(is_closed(mesh));
  for (const Vertex& v : mesh.vertices) {
    const Vec3 out = v.position - Vec3{0.1f, 0.2f, 0.3f};
    EXPECT_NEAR(length(out), 0.5f, 0.003f);
    EXPECT_GT(dot(normalize(out), normalize(normal_of(v))), 0.99f);
    EXPECT_EQ(v.color[0], 255);
    EXPECT_EQ(v.color[1], 0);
  }
}

TEST(PetMesh, CarvingAndStainingChangeTheCoveredPart) {
  const Mesh whole = sculpt({ball({}, 0.5f, paint(0xffffff))}, 0.05f);
  const Mesh carved_mesh = sculpt(
      {ball({}, 0.5f, paint(0xffffff)), carved(box({0, 0, 0.5f}, {1, 1, 0.4f}, 0.0f, paint(0xffffff)))},
      0.05f);
  const Mesh stained_mesh = sculpt(
      {ball({}, 0.5f, paint(0xffffff)), stained(box({0, 0, 0.6f}, {1, 1, 0.5f}, 0.0f, paint(0x0000ff)))},
      0.05f);
  const auto highest = [](const Mesh& mesh) {
    float z = -1.0f;
    for (const Vertex& v : mesh.vertices) z = std::max(z, v.position.z);
    return z;
  };
  EXPECT_NEAR(highest(whole), 0.5f, 0.01f);
  EXPECT_NEAR(highest(carved_mesh), 0.1f, 0.02f);
  EXPECT_EQ(stained_mesh.vertices.size(), whole.vertices.size());
  for (const Vertex& v : stained_mesh.vertices) {
    if (v.position.z > 0.2f) {
      EXPECT_EQ(v.color[0], 0);
    }
    if (v.position.z < 0.0f) {
      EXPECT_EQ(v.color[0], 255);
    }
  }
}

TEST(PetMesh, EveryModelIsThereAndWoundTowardsItsNormals) {
  const auto meshes = make_meshes();
  for (std::size_t m = 0; m < kMeshCount; ++m) {
    SCOPED_TRACE(m);
    const Mesh& mesh = meshes[m];
    ASSERT_FALSE(mesh.indices.empty());
    ASSERT_EQ(mesh.indices.size() % 3, 0u);
    if (static_cast<MeshId>(m) == MeshId::meadow) continue;  // blades have two sides
    std::size_t inwards = 0;
    for (std::size_t i = 0; i < mesh.indices.size(); i += 3) {
      const Vertex &a = mesh.vertices[mesh.indices[i]], &b = mesh.vertices[mesh.indices[i + 1]],
                   &c = mesh.vertices[mesh.indices[i + 2]];
      inwards += dot(cross(b.position - a.position, c.position - a.position),
                     normal_of(a) + normal_of(b) + normal_of(c)) < 0.0f;
    }
    EXPECT_LE(inwards * 200, mesh.indices.size() / 3);
  }
}

TEST(PetCamera, GroundUndoesProject) {
  Camera camera;
  camera.orbit(0.7f, 0.2f);
  camera.zoom(1.3f);
  camera.frame(1280.0f, 720.0f, {0.1f, 0.05f, 0.7f, 0.9f}, {1.0f, -2.0f}, {6.0f, 6.0f}, 1.0f);
  for (const Vec2 point : {Vec2{0, 0}, Vec2{4.2f, -3.0f}, Vec2{-5.0f, 5.0f}}) {
    const auto pixel = camera.project({point.x, point.y, 0.0f});
    ASSERT_TRUE(pixel);
    const auto back = camera.ground(*pixel);
    ASSERT_TRUE(back);
    EXPECT_NEAR(back->x, point.x, 1e-2f);
    EXPECT_NEAR(back->y, point.y, 1e-2f);
  }
}

TEST(PetCamera, FramesTheYardWithinItsRegion) {
  for (const auto& [width, height] :
       {std::pair{1280.0f, 720.0f}, std::pair{700.0f, 900.0f}, std::pair{1900.0f, 600.0f}}) {
    Camera camera;
    const Region region{0.05f, 0.1f, 0.75f, 0.85f};
    camera.frame(width, height, region, {3.0f, 1.0f}, {5.0f, 5.0f}, 1.0f);
    for (int corner = 0; corner < 8; ++corner) {
      const auto pixel = camera.project(
          {3.0f + (corner & 1 ? 5.0f : -5.0f), 1.0f + (corner & 2 ? 5.0f : -5.0f), corner & 4 ? 1.0f : 0.0f});
      ASSERT_TRUE(pixel);
      EXPECT_GE(pixel->x, region.left * width - 1.0f);
      EXPECT_LE(pixel->x, region.right * width + 1.0f);
      EXPECT_GE(pixel->y, region.top * height - 1.0f);
      EXPECT_LE(pixel->y, region.bottom * height + 1.0f);
    }
  }
}

TEST(PetText, IsCutBetweenLetters) {
  ImFontAtlas atlas;
  const Fonts fonts = add_fonts(atlas, 14.0f);
  ASSERT_TRUE(atlas.Build());
  const std::string letters = "\u00fc\u00f6\u00fcx\u20ac\u00e4", text = letters + letters;
  std::map<std::string, int> cuts;
  for (float width = text_size(fonts.body, text).x; width > 0.0f; width -= 0.5f) {
    const std::string cut = fitted(fonts.body, text, width);
    if (cut == text) continue;
    ASSERT_GE(cut.size(), 3u);
    ASSERT_EQ(cut.substr(cut.size() - 3), "...");
    const std::size_t kept = cut.size() - 3;
    EXPECT_EQ(cut.substr(0, kept), text.substr(0, kept));
    EXPECT_NE(static_cast<unsigned char>(text[kept]) & 0xc0, 0x80) << kept << " bytes end within a letter";
    ++cuts[cut];
  }
  EXPECT_GE(cuts.size(), 8u);
}

TEST(PetText, BeginsWithACapital) {
  for (const auto& [text, capital] : std::map<std::string, std::string>{{"", ""},
                                                                        {"sit", "Sit"},
                                                                        {"Sit", "Sit"},
                                                                        {"5 x", "5 x"},
                                                                        {"\u00fcber", "\u00dcber"},
                                                                        {"\u00e0 table", "\u00c0 table"},
                                                                        {"\u00fe", "\u00de"},
                                                                        {"\u00dcber", "\u00dcber"},
                                                                        {"\u00f7", "\u00f7"},
                                                                        {"\u00ff", "\u00ff"},
                                                                        {"\u00df", "\u00df"},
                                                                        {"\xc3", "\xc3"}}) {
    EXPECT_EQ(capitalized(text), capital);
  }
}

TEST(PetSheet, ShowsMomentsCurveAndTricks) {
  const Picture red{64, 36, [] {
                      std::vector<std::uint8_t> rgba;
                      for (int i = 0; i < 64 * 36; ++i) rgba.insert(rgba.end(), {255, 0, 0, 255});
                      return rgba;
                    }()};
  SheetData data;
  data.title = "A pet";
  data.rows = {
      {"before", {{red, "first"}, {red, "second"}}}, {"after", {{red, "third", true}}}, {"none", {}}};
  data.curve = {{0.0f, 0.1f}, {15.0f, 0.9f}, {30.0f, 1.0f}};
  data.ticks = {{3.0f, FeedbackKind::praise}, {9.0f, FeedbackKind::scold}};
  data.tricks = {{"sit", 0.1f, 1.0f}, {"spin", 0.1f, 0.5f}};
  const Picture sheet = draw_sheet(data);
  ASSERT_EQ(sheet.rgba.size(), static_cast<std::size_t>(sheet.width) * sheet.height * 4);
  std::size_t pictured = 0, curve = 0, bar = 0, wrong = 0;
  const auto is = [](const std::uint8_t* p, ImU32 color) {
    return p[0] == (color >> IM_COL32_R_SHIFT & 255) && p[1] == (color >> IM_COL32_G_SHIFT & 255) &&
           p[2] == (color >> IM_COL32_B_SHIFT & 255);
  };
  for (std::size_t i = 0; i < sheet.rgba.size(); i += 4) {
    const std::uint8_t* p = &sheet.rgba[i];
    ASSERT_EQ(p[3], 255);
    pictured += p[0] == 255 && p[1] == 0 && p[2] == 0;
    curve += is(p, palette::kLearn);
    bar += is(p, palette::kGood);
    wrong += is(p, palette::kWrong);
  }
  EXPECT_GT(pictured, 900000u);  // three large pictures
  EXPECT_GT(curve, 2000u);
  EXPECT_GT(bar, 3000u);
  EXPECT_GT(wrong, 1000u) << "a cross beside each of the first two";
}

TEST(PetSheet, DrawsWithNothingToShow) {
  const Picture sheet = draw_sheet({});
  EXPECT_FALSE(sheet.empty());
  EXPECT_FALSE(write_png(Picture{}, "never-written.png"));
}

}  // namespace
}  // namespace pet
