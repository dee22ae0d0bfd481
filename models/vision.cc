#include "net.h"

namespace heddle::models {

namespace {

Instr* picture(Net& net, int64_t batch, int64_t side) {
  return net.input(Type::f32, {batch, 3, side, side}, "image");
}

// The mean of every channel, then a dense layer.
Instr* classify(Net& net, Instr* x, int64_t classes) {
  const int64_t batch = x->shape().dim(0), width = x->shape().dim(1);
  return net.dense(net.b().reshape(net.mean(x, {2, 3}), {batch, width}), classes);
}

Instr* conv_norm(Net& net, Instr* x, int64_t outputs, int64_t kernel, int64_t stride) {
  const int64_t padding = kernel / 2;
  return net.batch_norm(
      net.conv(x, outputs, {kernel, kernel}, stride, {padding, padding}, /*bias=*/false), 1);
}

Instr* residual_block(Net& net, Instr* x, int64_t width, int64_t stride, bool bottleneck) {
  const int64_t outputs = bottleneck ? 4 * width : width;
  Instr* y = x;
  if (bottleneck) {
    y = net.relu(conv_norm(net, y, width, 1, 1));
    y = net.relu(conv_norm(net, y, width, 3, stride));
    y = conv_norm(net, y, outputs, 1, 1);
  } else {
    y = net.relu(conv_norm(net, y, width, 3, stride));
    y = conv_norm(net, y, outputs, 3, 1);
  }
  if (stride != 1 || x->shape().dim(1) != outputs) x = conv_norm(net, x, outputs, 1, stride);
  // Halved, so that sums of many blocks keep their size.
  return net.relu(net.mul(net.add(x, y), net.number(0.7)));
}

Instr* rep_block(Net& net, Instr* x, int64_t outputs, int64_t stride, bool deploy) {
  if (deploy) return net.relu(net.conv(x, outputs, {3, 3}, stride, {1, 1}));
  Instr* sum =
      net.add(conv_norm(net, x, outputs, 3, stride), conv_norm(net, x, outputs, 1, stride));
  if (stride == 1 && x->shape().dim(1) == outputs) sum = net.add(sum, net.batch_norm(x, 1));
  return net.relu(net.mul(sum, net.number(0.5)));
}

}  // namespace

ResNetSize resnet18_size() { return {{2, 2, 2, 2}}; }

ResNetSize resnet50_size() {
  ResNetSize size{{3, 4, 6, 3}};
  size.bottleneck = true;
  return size;
}

ModulePtr resnet(const ResNetSize& size) {
  Net net("resnet");
  Instr* x = picture(net, size.batch, size.side);
  x = net.relu(conv_norm(net, x, size.widths[0], 7, 2));
  x = net.max_pool(x, 3, {2, 2}, {1, 1});
  for (size_t stage = 0; stage < size.blocks.size(); ++stage)
    for (int64_t i = 0; i < size.blocks[stage]; ++i)
      x = residual_block(net, x, size.widths[stage], i == 0 && stage > 0 ? 2 : 1, size.bottleneck);
  return net.finish(classify(net, x, size.classes));
}

ModulePtr vgg(const VggSize& size) {
  Net net("vgg");
  Instr* x = picture(net, size.batch, size.side);
  for (size_t stage = 0; stage < size.blocks.size(); ++stage) {
    for (int64_t i = 0; i < size.blocks[stage]; ++i)
      x = net.relu(net.conv(x, size.widths[stage], {3, 3}, 1, {1, 1}));
    x = net.max_pool(x, 2, {2, 2}, {0, 0});
  }
  x = net.b().reshape(x, {size.batch, x->shape().elems() / size.batch});
  for (int64_t width : size.hidden) x = net.relu(net.dense(x, width));
  return net.finish(net.dense(x, size.classes));
}

RepVggSize repvgg_a0_size(bool deploy) { return {{2, 4, 14, 1}, {48, 96, 192, 1280}, 48, deploy}; }

RepVggSize repvgg_b0_size(bool deploy) { return {{4, 6, 16, 1}, {64, 128, 256, 1280}, 64, deploy}; }

ModulePtr repvgg(const RepVggSize& size) {
  Net net("repvgg");
  Instr* x = rep_block(net, picture(net, size.batch, size.side), size.first_width, 2, size.deploy);
  for (size_t stage = 0; stage < size.blocks.size(); ++stage)
    for (int64_t i = 0; i < size.blocks[stage]; ++i)
      x = rep_block(net, x, size.widths[stage], i == 0 ? 2 : 1, size.deploy);
  return net.finish(classify(net, x, size.classes));
}

}  // namespace heddle::models
