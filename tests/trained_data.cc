#include "trained_data.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heddle {
namespace {

constexpr int64_t kClasses = 10;
constexpr int64_t kSide = 16, kChannels = 3, kPixels = kSide * kSide * kChannels;
constexpr int64_t kLength = 32, kTokens = 64, kMotif = 4, kMotifTokens = 20, kPlanted = 8;
constexpr double kNoise = 1.4;
constexpr int64_t kMoved = 2;

// Four waves a channel, of deviation 1 together.
std::vector<float> make_patterns(Random* random) {
  std::vector<float> patterns(kClasses * kPixels);
  for (int64_t c = 0; c < kClasses; ++c)
    for (int64_t channel = 0; channel < kChannels; ++channel)
      for (int wave = 0; wave < 4; ++wave) {
        const auto down = static_cast<double>(random->below(4));
        const auto across = static_cast<double>(random->below(7) - 3);
        const double phase = random->uniform() * 2 * std::numbers::pi;
        for (int64_t y = 0; y < kSide; ++y)
          for (int64_t x = 0; x < kSide; ++x) {
            const double at = (down * static_cast<double>(y) + across * static_cast<double>(x)) *
                              2 * std::numbers::pi / kSide;
            patterns[c * kPixels + (y * kSide + x) * kChannels + channel] +=
                static_cast<float>(std::cos(at + phase) / std::numbers::sqrt2);
          }
      }
  return patterns;
}

std::vector<int32_t> make_motifs(Random* random) {
  std::vector<int32_t> motifs, all(kMotifTokens);
  for (int32_t i = 0; i < kMotifTokens; ++i) all[i] = i;
  for (int64_t c = 0; c < kClasses; ++c)
    for (int64_t i = 0; i < kMotif; ++i) {
      std::swap(all[i], all[i + random->below(kMotifTokens - i)]);
      motifs.push_back(all[i]);
    }
  return motifs;
}

}  // namespace

uint64_t Random::word() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::normal() {
  const uint64_t w = word();
  const auto sum =
      static_cast<double>((w & 0xffff) + (w >> 16 & 0xffff) + (w >> 32 & 0xffff) + (w >> 48));
  return (sum * 0x1p-16 - 2) * std::numbers::sqrt3;
}

DataStream::DataStream(std::string kind, double flipped, uint64_t seed)
    : kind_(std::move(kind)), flipped_(flipped), random_(seed) {
  Random classes(7);
  if (kind_ == "images")
    patterns_ = make_patterns(&classes);
  else
    motifs_ = make_motifs(&classes);
}

void DataStream::image(int64_t label, float* pixels) {
  const int64_t down = random_.below(2 * kMoved + 1) - kMoved + kSide;
  const int64_t across = random_.below(2 * kMoved + 1) - kMoved + kSide;
  const double strength = 0.7 + 0.6 * random_.uniform();
  const float* pattern = patterns_.data() + label * kPixels;
  for (int64_t y = 0; y < kSide; ++y)
    for (int64_t x = 0; x < kSide; ++x)
      for (int64_t c = 0; c < kChannels; ++c) {
        const int64_t from = (y + down) % kSide * kSide + (x + across) % kSide;
        const double value = strength * pattern[from * kChannels + c] + kNoise * random_.normal();
        *pixels++ = static_cast<float>(std::clamp(std::nearbyint(value * 32), -128.0, 127.0) / 32);
      }
}

void DataStream::sequence(int64_t label, int32_t* tokens) {
  for (int64_t i = 0; i < kLength; ++i) tokens[i] = static_cast<int32_t>(random_.below(kTokens));
  // One in each piece of the sequence, so that none is written over another.
  constexpr int64_t kPiece = kLength / kPlanted;
  for (int64_t i = 0; i < kPlanted; ++i)
    tokens[i * kPiece + random_.below(kPiece)] = motifs_[label * kMotif + random_.below(kMotif)];
}

Samples DataStream::next(int64_t count) {
  const bool images = kind_ == "images";
  using tensor::Shape;
  using tensor::Type;
  Samples samples{tensor::Literal(images ? Shape(Type::f32, {count, kSide, kSide, kChannels})
                                         : Shape(Type::s32, {count, kLength})),
                  tensor::Literal(Shape(Type::s32, {count}))};
  auto* x = static_cast<float*>(samples.x.mutable_data());
  auto* tokens = static_cast<int32_t*>(samples.x.mutable_data());
  for (int32_t& label : samples.labels.mutable_values<int32_t>()) {
    label = static_cast<int32_t>(random_.below(kClasses));
    if (images)
      image(label, x), x += kPixels;
    else
      sequence(label, tokens), tokens += kLength;
    if (random_.uniform() < flipped_) label = static_cast<int32_t>(random_.below(kClasses));
  }
  return samples;
}

}  // namespace heddle
