// The search for NVRTC, in a tree of files made for it.
#include "emit/cuda/nvrtc_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "emit/cuda/nvrtc.h"

namespace heddle::emit::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NvrtcPlacesTest : public ::testing::Test {
 protected:
  NvrtcPlacesTest() : root_(::testing::TempDir() + "nvrtc_" + std::to_string(::getpid())) {
    fs::create_directories(root_);
    where_.root = root_;
  }
  ~NvrtcPlacesTest() override { fs::remove_all(root_); }

  std::string file(const std::string& name) {
    const fs::path path = fs::path(root_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "no library";
    return path.string();
  }

  std::string root_;
  Surroundings where_;
};

constexpr const char* kLoader[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};

TEST_F(NvrtcPlacesTest, PackagesThenToolkitsThenTheLoader) {
  const std::string cu12 =
      file("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string cu13 = file("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  file("venv/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libnvrtc.so.9");
  file("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
  const std::string other =
      file("opt/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  file("opt/bin/python3");
  const std::string old = file("usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  const std::string recent = file("usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  file("usr/local/cuda-13.0/lib64/libnvrtc.so.12");
  where_.virtual_env = root_ + "/venv";
  where_.path = root_ + "/nothing:" + root_ + "/opt/bin";
  EXPECT_THAT(nvrtc_places(where_).files,
              ElementsAre(cu13, cu12, other, recent, old, kLoader[0], kLoader[1], kLoader[2]));
}

TEST_F(NvrtcPlacesTest, ALinkedPythonLeadsToItsEnvironment) {
  const std::string real =
      file("conda/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  file("conda/bin/python3.12");
  fs::create_directories(root_ + "/bin");
  fs::create_symlink(root_ + "/conda/bin/python3.12", root_ + "/bin/python3");
  where_.path = root_ + "/bin";
  EXPECT_EQ(nvrtc_places(where_).files.front(), fs::canonical(real).string());
}

TEST_F(NvrtcPlacesTest, TheNamedOneAlone) {
  const std::string named = file("here/libnvrtc.so.13");
  file("usr/local/cuda/lib64/libnvrtc.so.12");
  for (const std::string& name : {named, root_ + "/here"}) {
    where_.named = name;
    EXPECT_THAT(nvrtc_places(where_).files, ElementsAre(named));
  }
}

TEST_F(NvrtcPlacesTest, EveryPlaceIsTold) {
  file("opt/bin/python3");
  where_.path = root_ + "/opt/bin";
  where_.home = root_ + "/home";
  const std::string tried = nvrtc_places(where_, root_ + "/own").tried;
  for (const char* place : {"HEDDLE_NVRTC: not set", "/own/lib/python3*", "VIRTUAL_ENV: not set",
                            "/opt/bin/python3: no nvidia/cu*", "/home/.local/lib",
                            "/usr/local/cuda*/lib64: none", "libnvrtc.so.12 by the loader"})
    EXPECT_THAT(tried, HasSubstr(place));
}

TEST_F(NvrtcPlacesTest, AnErrorNamesThem) {
  const std::string named = file("here/libnvrtc.so.13");
  ::setenv("HEDDLE_NVRTC", named.c_str(), 1);
  const auto opened = Nvrtc::open();
  ::unsetenv("HEDDLE_NVRTC");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::machine);
  EXPECT_THAT(opened.error().message, HasSubstr("HEDDLE_NVRTC alone: " + named));
}

}  // namespace
}  // namespace heddle::emit::cuda
