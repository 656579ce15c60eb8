// Sounds of one channel at 16 kHz, as numbers between -1 and 1.
#pragma once

#include <imprint/compute.h>

#include <string>
#include <vector>

constexpr int kRate = 16000;

// A WAV file of 16-bit samples at 16 kHz; of several channels it takes the first. Errors: io, corrupt_file,
// unsupported (another rate or width).
imprint::Result<std::vector<float>> read_wav(const std::string& path);

// A second each of silence, of sung vowels, of noise, and of vowels again: pulses through the resonances of a
// throat.
std::vector<float> made_sound();
