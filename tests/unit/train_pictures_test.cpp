// Pictures from files: against libjpeg and libpng (tests/data/pictures), at other sizes, in folders; and
// files that are damaged or ask for much.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "compute/base/text.h"
#include "compute/training/dataset.h"

namespace imprint::training {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

const fs::path kPictures = IMPRINT_TEST_PICTURES;

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return bytes_of({std::istreambuf_iterator<char>(file), {}});
}

ErrorCode refusal(const Bytes& bytes, const PictureOptions& options = {}) {
  const auto found = decode_picture(bytes, "a picture", options);
  EXPECT_FALSE(found);
  if (found) return ErrorCode::internal;
  EXPECT_TRUE(found.error().message.starts_with("a picture: found ")) << found.error().message;
  return found.error().code;
}

TEST(Pictures, EqualThoseOfLibjpegAndLibpng) {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kPictures)) {
    const fs::path path = entry.path();
    if (path.extension() != ".jpg" && path.extension() != ".png") continue;
    SCOPED_TRACE(path.filename().string());
    fs::path raw = path;
    const bool is_grey = fs::exists(raw.replace_extension(".pgm"));
    if (!is_grey) raw.replace_extension(".ppm");
    const PictureOptions options{.channels = is_grey ? 1 : 3};
    const auto found = read_picture(path.string(), options), expected = read_picture(raw.string(), options);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(expected) << expected.error().message;
    ASSERT_EQ(found->shape, (Shape{options.channels, 13, 19}));
    ASSERT_EQ(found->shape, expected->shape);
    EXPECT_EQ(found->floats, expected->floats);
    ++count;
  }
  EXPECT_EQ(count, 12);
}

// A PGM with these pixels.
Bytes grey_picture(int height, int width, const std::function<int(int, int)>& pixel) {
  std::string file = text("P5 ", width, " ", height, " 255\n");
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) file += static_cast<char>(pixel(y, x));
  return bytes_of(file);
}

std::vector<float> grey_at(const Bytes& bytes, std::int64_t height, std::int64_t width, PictureFit fit) {
  const auto found =
      decode_picture(bytes, "a", {.height = height, .width = width, .channels = 1, .fit = fit});
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  if (!found) return {};
  std::vector<float> pixels = found->floats;
  for (float& each : pixels) each *= 255;
  return pixels;
}

// The filter by its definition, along one axis.
std::vector<double> triangle(const std::vector<double>& source, std::size_t count) {
  const double scale = static_cast<double>(source.size()) / static_cast<double>(count);
  const double reach = std::max(scale, 1.0);
  std::vector<double> result;
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0, weights = 0;
    for (std::size_t k = 0; k < source.size(); ++k) {
      const double away = std::fabs(static_cast<double>(k) + 0.5 - (static_cast<double>(i) + 0.5) * scale);
      const double weight = std::max(0.0, 1 - away / reach);
      sum += weight * source[k];
      weights += weight;
    }
    result.push_back(sum / weights);
  }
  return result;
}

TEST(Pictures, ChangeTheirSize) {
  const auto wave = [](int, int x) { return (x * x * 7 + 11 * x) % 251; };
  std::vector<double> line;
  for (int x = 0; x < 23; ++x) line.push_back(wave(0, x));
  const Bytes picture = grey_picture(5, 23, wave);
  for (const std::size_t width : {1u, 7u, 22u, 23u, 60u}) {
    const std::vector<float> found =
        grey_at(picture, 3, static_cast<std::int64_t>(width), PictureFit::stretch);
    const std::vector<double> expected = triangle(line, width);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i % width], 1e-3) << width << " element " << i;
  }
  // Rows as columns.
  const Bytes turned = grey_picture(23, 5, [&](int y, int) { return wave(0, y); });
  const std::vector<float> found = grey_at(turned, 7, 2, PictureFit::stretch);
  const std::vector<double> expected = triangle(line, 7);
  for (std::size_t i = 0; i < 14; ++i) ASSERT_NEAR(found[i], expected[i / 2], 1e-3);
}

TEST(Pictures, FitByCroppingOrPadding) {
  // Six columns of 10, 20, ..., 60, two rows.
  const Bytes picture = grey_picture(2, 6, [](int, int x) { return 10 * (x + 1); });
  const auto expect = [](const std::vector<float>& found, const std::vector<float>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-3) << i;
  };
  expect(grey_at(picture, 2, 2, PictureFit::crop), {30, 40, 30, 40});
  expect(grey_at(picture, 6, 6, PictureFit::pad),
         {0,  0,  0,  0,  0,  0,  0, 0, 0, 0, 0, 0, 10, 20, 30, 40, 50, 60,
          10, 20, 30, 40, 50, 60, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0});
  const auto colour = decode_picture(bytes_of(std::string("P6 1 1 255 \xff\x80\x00", 14)), "a",
                                     {.height = 1, .width = 1, .channels = 1});
  ASSERT_TRUE(colour);
  EXPECT_NEAR(colour->floats[0], 0.299 + 0.587 * 128 / 255, 1e-6);
  for (const PictureOptions& wrong :
       {PictureOptions{.height = 4}, PictureOptions{.channels = 2}, PictureOptions{.height = -1, .width = 2},
        PictureOptions{.height = 1 << 20, .width = 1 << 20}})
    EXPECT_EQ(decode_picture(picture, "a", wrong).error().code, ErrorCode::invalid_argument);
}

// ---- damage ----

TEST(Pictures, ThatAreCutOffGiveErrors) {
  for (const char* name : {"progressive.jpg", "halved_colour.jpg", "png_palette.png", "png_interlaced.png"}) {
    const Bytes whole = content_of(kPictures / name);
    ASSERT_TRUE(decode_picture(whole, "a"));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto found = decode_picture(std::span(whole).first(size), "a");
      ASSERT_FALSE(found) << name << " " << size;
      EXPECT_EQ(found.error().code, ErrorCode::corrupt_file) << found.error().message;
    }
  }
  for (const char* bad : {"", "GIF89a", "P5", "P5 2 1 255 x", "P7 1 1 255 x", "P5 99999999999 1 255 x"})
    EXPECT_EQ(decode_picture(bytes_of(bad), "a").error().code, ErrorCode::corrupt_file) << bad;
  EXPECT_EQ(read_picture((kPictures / "none.png").string()).error().code, ErrorCode::not_found);
}

// Codecs know a wrong sum of a PNG's chunk, and pixels of a JPEG that no code stands for.
TEST(Pictures, WithAWrongByteGiveErrors) {
  Bytes png = content_of(kPictures / "png_rgb.png");
  for (std::size_t at = 0; at < png.size(); ++at) {
    png[at] ^= std::byte{0x10};
    EXPECT_EQ(refusal(png), ErrorCode::corrupt_file) << at;
    png[at] ^= std::byte{0x10};
  }
  Bytes jpeg = content_of(kPictures / "halved_colour.jpg");
  for (std::size_t at = jpeg.size() - 40; at < jpeg.size() - 2; ++at) jpeg[at] = std::byte{0xfe};
  EXPECT_EQ(refusal(jpeg), ErrorCode::corrupt_file);
}

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

// A PNG with these extents, of 8 bits of grey, and these bytes of compressed pixels.
Bytes png_of(std::uint32_t width, std::uint32_t height, const Bytes& data) {
  Bytes file = bytes_of("\x89PNG\r\n\x1a\n");
  const auto put = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::byte>(value >> shift & 255));
  };
  const auto chunk = [&](const char* name, const Bytes& content) {
    put(static_cast<std::uint32_t>(content.size()));
    for (int i = 0; i < 4; ++i) file.push_back(static_cast<std::byte>(name[i]));
    file.insert(file.end(), content.begin(), content.end());
    put(crc_of(std::span(file).last(content.size() + 4)));
  };
  Bytes head;
  std::swap(head, file);
  put(width), put(height);
  for (const int byte : {8, 0, 0, 0, 0}) file.push_back(static_cast<std::byte>(byte));
  std::swap(head, file);
  chunk("IHDR", head);
  chunk("IDAT", data);
  chunk("IEND", {});
  return file;
}

// A deflate stream of about 160 times as many zeros as it has bytes.
Bytes zeros_compressed(std::size_t bytes) {
  Bytes out = bytes_of("\x78\x01");
  unsigned bits = 0, count = 0;
  const auto put = [&](unsigned value, unsigned length) {  // the first bit is the lowest
    for (unsigned i = 0; i < length; ++i) {
      bits |= (i < 8 ? value >> i & 1 : 0) << count;
      if (++count == 8) out.push_back(static_cast<std::byte>(bits)), bits = count = 0;
    }
  };
  put(1, 1), put(1, 2);                                // the last block, with the fixed codes
  put(0x0c, 8);                                        // the literal 0: 00110000, the highest bit first
  while (out.size() < bytes) put(0xa3, 8), put(0, 5);  // 258 bytes from 1 before: 11000101, 00000
  put(0, 7), put(0, 40);  // the end, and room for the sum, which decoders warn about
  return out;
}

TEST(Pictures, ThatAskForMuchAreRefused) {
  // By the header alone.
  EXPECT_EQ(refusal(png_of(60000, 60000, {})), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(png_of(9000, 9000, {})), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(png_of(9000, 9000, {}), {.memory_limit = 128 << 20}), ErrorCode::corrupt_file);
  EXPECT_EQ(refusal(png_of(0x7fffffff, 0x7fffffff, {})), ErrorCode::corrupt_file);
  EXPECT_EQ(refusal(png_of(4000, 4000, {})), ErrorCode::corrupt_file);  // 16 million pixels in no bytes
  // Pixels that the header does not mention.
  const Bytes bomb = png_of(1, 1, zeros_compressed(1 << 16));
  EXPECT_EQ(refusal(bomb), ErrorCode::corrupt_file);
  EXPECT_EQ(refusal(png_of(300, 300, zeros_compressed(1 << 12)), {.memory_limit = 1 << 16}),
            ErrorCode::invalid_argument);
  const auto black = decode_picture(png_of(300, 300, zeros_compressed(1 << 12)), "a");
  EXPECT_TRUE(black) << black.error().message;

  Bytes jpeg = content_of(kPictures / "colour.jpg");
  const auto find = [&](int marker, std::size_t from = 2) {
    while (jpeg[from] != std::byte{0xff} || jpeg[from + 1] != static_cast<std::byte>(marker)) ++from;
    return from;
  };
  const std::size_t frame = find(0xc0), table = find(0xc4);
  Bytes large = jpeg;
  for (std::size_t i = 5; i < 9; ++i) large[frame + i] = std::byte{0xf0};
  EXPECT_EQ(refusal(large), ErrorCode::invalid_argument);
  large[frame + 5] = large[frame + 7] = std::byte{0x0f};
  EXPECT_EQ(refusal(large, {.memory_limit = 256 << 20}), ErrorCode::corrupt_file);
  // A table of more codes than a decoder has room for.
  Bytes wide = jpeg;
  for (std::size_t i = 0; i < 16; ++i) wide[table + 5 + i] = std::byte{0xff};
  EXPECT_EQ(refusal(wide), ErrorCode::corrupt_file);
  // Scans without end: each visits all pixels.
  jpeg = content_of(kPictures / "progressive.jpg");
  const std::size_t scan = find(0xda), next = find(0xc4, scan);
  const Bytes one(jpeg.begin() + static_cast<std::ptrdiff_t>(scan),
                  jpeg.begin() + static_cast<std::ptrdiff_t>(next));
  Bytes many = jpeg;
  for (int i = 0; i < 70; ++i)
    many.insert(many.begin() + static_cast<std::ptrdiff_t>(scan), one.begin(), one.end());
  EXPECT_EQ(refusal(many), ErrorCode::corrupt_file);
}

// ---- folders ----

TEST(Pictures, OfAFolderPerClass) {
  const fs::path folder = fs::temp_directory_path() / "imprint-train-pictures";
  fs::remove_all(folder);
  fs::create_directories(folder / "cat");
  fs::create_directories(folder / "dog");
  fs::copy_file(kPictures / "colour.jpg", folder / "cat" / "1.JPG");
  fs::copy_file(kPictures / "png_two_bits.png", folder / "dog" / "2.png");
  std::ofstream(folder / "dog" / "notes.txt") << "no picture";
  const auto data = picture_folder(folder.string(), {.height = 8, .width = 12});
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ((*data)->size(), 2);
  EXPECT_EQ((*data)->fields()[0].shape, (Shape{3, 8, 12}));
  std::vector<HostTensor> batch{HostTensor::from(std::vector<float>(2 * 288), {2, 3, 8, 12}),
                                HostTensor::from_ints({7, 7}, {2})};
  for (const std::int64_t i : {0, 1}) {
    const Result<> read = (*data)->read(i, batch, i);
    ASSERT_TRUE(read) << read.error().message;
  }
  EXPECT_EQ(batch[1].ints, (std::vector<std::int32_t>{0, 1}));
  EXPECT_NE(batch[0].floats[5], batch[0].floats[96 + 5]);              // colours
  EXPECT_EQ(batch[0].floats[288 + 5], batch[0].floats[288 + 96 + 5]);  // grey, on all channels
  EXPECT_EQ(class_names(folder.string()).value(), (std::vector<std::string>{"cat", "dog"}));

  std::ofstream(folder / "cat" / "0.png") << "no PNG";
  EXPECT_TRUE(picture_folder(folder.string(), {.height = 8, .width = 12}));  // until it is read
  EXPECT_EQ(picture_folder(folder.string()).error().code, ErrorCode::corrupt_file);
  EXPECT_FALSE(class_names((folder / "none").string()));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace imprint::training
