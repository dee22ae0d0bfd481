// serve --models DIR --port 8000: README.md
#include <CLI/CLI.hpp>
#include <csignal>

#include "http.h"

namespace serve {

static void run(const std::string& folder, const std::string& host, const Config& config,
                const Limits& limits, const sigset_t& signals) {
  std::atomic<bool> stop = false;
  Metrics metrics;
  Repository models(folder, config, limits, metrics, stop);
  auto scheduler = std::make_unique<Scheduler>(limits, metrics);
  Server server(limits, models, *scheduler, metrics);
  fmt::print(stderr, "listening at {}:{}\n", host, server.listen_at(host));
  std::thread listener([&] { server.accept_until(stop); });
  std::thread loader([&] {
    for (auto next = Clock::now(); !stop;
         std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
      if (Clock::now() < next) continue;
      models.look();
      next = Clock::now() +
             std::chrono::milliseconds(static_cast<int64_t>(limits.poll_seconds * 1000));
    }
  });
  int signal = 0;
  sigwait(&signals, &signal);
  fmt::print(stderr, "draining\n");
  stop = true;
  listener.join();
  if (!server.drain(limits.drain_seconds))
    fmt::print(stderr, "error: not all requests ended in {} s\n", limits.drain_seconds);
  scheduler.reset();
  while (!server.drain(1)) {
  }
  loader.join();
}

}  // namespace serve

int main(int argc, char** argv) {
  serve::Config config;
  serve::Limits limits;
  std::string folder, host = "127.0.0.1";
  CLI::App app{"Serves a folder of models over HTTP, by KServe's v2 protocol."};
  const auto option = [&](const char* name, auto& value, auto least, decltype(least) most,
                          const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
  };
  app.add_option("--models", folder, "folder of models")->required()->check(CLI::ExistingDirectory);
  app.add_option("--host", host, "address to listen at; 0.0.0.0: all")->capture_default_str();
  option("--port", limits.port, 0, 65535, "0: any that is free");
  app.add_option("--batch-dimension", config.batch,
                 "along which requests are joined, where config.json names none");
  option("--most-rows", config.most_rows, 1, 1024, "of one run, where config.json does not say");
  option("--delay-ms", config.delay_ms, 0.0, 10000.0, "that a request waits for others, likewise");
  option("--runners", limits.runners, 1, 64, "runs at the same time, of all models");
  option("--threads", limits.threads, 0, 1024,
         "of one run; 0: the cores, shared among the runners");
  option("--queue", limits.queued, 1, 1 << 20, "requests that wait; more get 503");
  option("--connections", limits.connections, 4, 900, "of clients; more get 503");
  option("--body-bytes", limits.body_bytes, 1.0, 4e9,
         "of a request, and of an output; more get 413");
  option("--all-bytes", limits.all_bytes, 1.0, 1e12, "of all requests; more get 503");
  option("--request-seconds", limits.request_seconds, 0.1, 3600.0,
         "for a request to come, and for a reply to go");
  option("--idle-seconds", limits.idle_seconds, 0.1, 3600.0,
         "between two requests of a connection");
  option("--drain-seconds", limits.drain_seconds, 0.0, 3600.0,
         "for requests under way, after SIGTERM");
  option("--poll-seconds", limits.poll_seconds, 0.05, 3600.0, "between two looks at the folder");
  try {
    app.parse(argc, argv);
    if (limits.threads == 0)
      limits.threads =
          std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / limits.runners);
    // All threads inherit that signals wait for sigwait.
    sigset_t signals;
    sigemptyset(&signals);
    for (const int one : {SIGTERM, SIGINT}) sigaddset(&signals, one);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    serve::run(folder, host, config, limits, signals);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
