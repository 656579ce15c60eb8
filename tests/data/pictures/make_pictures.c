/* Pictures for the tests of decoders, and what libjpeg and libpng decode from them: make FOLDER. */
#include <stdio.h>
/* jpeglib.h needs the one before. */
#include <jpeglib.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

enum { W = 19, H = 13 };

static unsigned char value(int x, int y, int c) {
  return (unsigned char)(c == 0   ? 12 * x + 7
                         : c == 1 ? 18 * y + 5
                         : c == 2 ? 128 + (x - 9) * (y - 6)
                                  : 40 * (x % 5) + 15 * (y % 3));
}

static FILE* opened(const char* folder, const char* name, const char* ending, const char* mode) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
  return fopen(path, mode);
}

static void write_pnm(const char* folder, const char* name, int channels, const unsigned char* pixels) {
  FILE* file = opened(folder, name, channels == 1 ? "pgm" : "ppm", "wb");
  fprintf(file, "P%d %d %d 255\n", channels == 1 ? 5 : 6, W, H);
  fwrite(pixels, 1, (size_t)(W * H * channels), file);
  fclose(file);
}

static void jpeg(const char* folder, const char* name, int channels, int progressive, int sampling,
                 int restart) {
  struct jpeg_compress_struct out;
  struct jpeg_error_mgr errors;
  FILE* file = opened(folder, name, "jpg", "wb");
  out.err = jpeg_std_error(&errors);
  jpeg_create_compress(&out);
  jpeg_stdio_dest(&out, file);
  out.image_width = W, out.image_height = H, out.input_components = channels;
  out.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&out);
  jpeg_set_quality(&out, 92, TRUE);
  if (progressive) jpeg_simple_progression(&out);
  out.comp_info[0].h_samp_factor = sampling, out.comp_info[0].v_samp_factor = sampling;
  out.restart_interval = (unsigned)restart;
  jpeg_start_compress(&out, TRUE);
  for (int y = 0; y < H; ++y) {
    unsigned char row[W * 4];
    for (int x = 0; x < W; ++x)
      for (int c = 0; c < channels; ++c) row[x * channels + c] = value(x, y, c);
    JSAMPROW rows = row;
    jpeg_write_scanlines(&out, &rows, 1);
  }
  jpeg_finish_compress(&out);
  fclose(file);

  struct jpeg_decompress_struct in;
  file = opened(folder, name, "jpg", "rb");
  in.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&in);
  jpeg_stdio_src(&in, file);
  jpeg_read_header(&in, TRUE);
  in.out_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_start_decompress(&in);
  unsigned char pixels[W * H * 4];
  while (in.output_scanline < H) {
    JSAMPROW row = pixels + in.output_scanline * W * channels;
    jpeg_read_scanlines(&in, &row, 1);
  }
  fclose(file);
  /* Adobe's inks say how much light they leave, and so does black. */
  for (int i = 0; channels == 4 && i < W * H; ++i)
    for (int c = 0; c < 3; ++c)
      pixels[3 * i + c] = (unsigned char)((pixels[4 * i + c] * pixels[4 * i + 3] + 127) / 255);
  write_pnm(folder, name, channels == 1 ? 1 : 3, pixels);
}

static void picture(const char* folder, const char* name, int type, int bits, int interlaced) {
  const int channels = type == PNG_COLOR_TYPE_RGB          ? 3
                       : type == PNG_COLOR_TYPE_RGBA       ? 4
                       : type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                                           : 1;
  FILE* file = opened(folder, name, "png", "wb");
  png_structp out = png_create_write_struct(PNG_LIBPNG_VER_STRING, 0, 0, 0);
  png_infop info = png_create_info_struct(out);
  png_init_io(out, file);
  png_set_IHDR(out, info, W, H, bits, type, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
  if (type == PNG_COLOR_TYPE_PALETTE) {
    png_color colours[16];
    for (int i = 0; i < 16; ++i)
      colours[i] = (png_color){(png_byte)(16 * i), (png_byte)(255 - 13 * i), (png_byte)(7 * i)};
    png_set_PLTE(out, info, colours, 16);
  }
  png_write_info(out, info);
  if (bits < 8) png_set_packing(out);
  static unsigned char rows[H][W * 8];
  png_bytep pointers[H];
  unsigned char pixels[W * H * 3];
  for (int y = 0; y < H; ++y) {
    pointers[y] = rows[y];
    for (int x = 0; x < W; ++x) {
      for (int c = 0; c < channels; ++c) {
        unsigned char v = value(x, y, c);
        if (bits == 16)
          rows[y][(x * channels + c) * 2] = v, rows[y][(x * channels + c) * 2 + 1] = (unsigned char)(v * 3);
        else
          rows[y][x * channels + c] = bits == 8 ? v : (unsigned char)(v >> (8 - bits));
      }
      for (int c = 0; c < 3; ++c) {
        int v = value(x, y, channels <= 2 ? 0 : c);
        if (bits < 8) v = (v >> (8 - bits)) * 255 / ((1 << bits) - 1);
        if (type == PNG_COLOR_TYPE_PALETTE) {
          int i = value(x, y, 0) >> 4;
          v = c == 0 ? 16 * i : c == 1 ? 255 - 13 * i : 7 * i;
        }
        if (channels <= 2 && type != PNG_COLOR_TYPE_PALETTE) {
          if (c == 0) pixels[y * W + x] = (unsigned char)v;
        } else
          pixels[(y * W + x) * 3 + c] = (unsigned char)v;
      }
    }
  }
  png_write_image(out, pointers);
  png_write_end(out, info);
  fclose(file);
  write_pnm(folder, name, channels <= 2 && type != PNG_COLOR_TYPE_PALETTE ? 1 : 3, pixels);
}

int main(int count, char** arguments) {
  const char* folder = count > 1 ? arguments[1] : ".";
  jpeg(folder, "colour", 3, 0, 1, 0);
  jpeg(folder, "halved_colour", 3, 0, 2, 2);
  jpeg(folder, "progressive", 3, 1, 2, 0);
  jpeg(folder, "grey", 1, 0, 1, 0);
  jpeg(folder, "inks", 4, 0, 1, 0);
  picture(folder, "png_rgb", PNG_COLOR_TYPE_RGB, 8, 0);
  picture(folder, "png_interlaced", PNG_COLOR_TYPE_RGB, 8, 1);
  picture(folder, "png_rgba", PNG_COLOR_TYPE_RGBA, 8, 0);
  picture(folder, "png_grey_alpha", PNG_COLOR_TYPE_GRAY_ALPHA, 8, 0);
  picture(folder, "png_two_bits", PNG_COLOR_TYPE_GRAY, 2, 1);
  picture(folder, "png_palette", PNG_COLOR_TYPE_PALETTE, 4, 0);
  picture(folder, "png_deep", PNG_COLOR_TYPE_RGB, 16, 0);
  return 0;
}
