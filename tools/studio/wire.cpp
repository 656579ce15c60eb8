#include "tools/studio/wire.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "compute/base/text.h"

namespace imprint::studio {
namespace {

constexpr std::uint32_t kMagic = 0x53504D49;           // "IMPS"
constexpr std::size_t kAtOnce = std::size_t{1} << 16;  // bytes of one read
constexpr std::chrono::seconds kClosed{1};             // a door, after the system had no room

struct WireHead {
  std::uint32_t magic = kMagic;
  MessageKind kind = MessageKind::hello;
  std::uint64_t bytes = 0;
};

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

constexpr const char* kOfLearner = "Give HOST:PORT of a learner.";
constexpr const char* kOwn = "Give an address of this computer, or 0.0.0.0 for all of them.";

Error fail_at(const std::string& address, const std::string& cause, const char* remedy) {
  return make_error(ErrorCode::io, text("address '", address, "': ", cause, ". ", remedy));
}

// HOST:PORT -> both. Without a colon the port is 0.
std::pair<std::string, std::string> split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {address, "0"};
  return {address.substr(0, colon), address.substr(colon + 1)};
}

Result<Addresses> look_up(const std::string& address, int flags, const char* remedy) {
  const auto [host, port] = split_address(address);
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found);
  if (problem != 0) return fail_at(address, ::gai_strerror(problem), remedy);
  return Addresses(found, &::freeaddrinfo);
}

void make_quick(int socket) {
  // A computer that vanished says nothing: the other end asks after half a minute of silence.
  const int on = 1, idle_s = 30, pause_s = 10, tries = 3, unanswered_ms = 60'000;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &pause_s, sizeof pause_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

bool is_temporary(int cause) { return cause == EAGAIN || cause == EWOULDBLOCK || cause == EINTR; }

}  // namespace

Wire::Wire(int socket) : socket_(socket) { make_quick(socket); }

Wire::Wire(Wire&& other) noexcept { *this = std::move(other); }

Wire& Wire::operator=(Wire&& other) noexcept {
  if (this == &other) return *this;
  close("");
  socket_ = std::exchange(other.socket_, -1);
  most_bytes_ = other.most_bytes_;
  why_closed_ = std::move(other.why_closed_);
  out_ = std::move(other.out_);
  in_ = std::move(other.in_);
  sent_ = std::exchange(other.sent_, 0);
  read_ = std::exchange(other.read_, 0);
  return *this;
}

Wire::~Wire() { close(""); }

void Wire::close(const std::string& why) {
  if (socket_ < 0) return;
  ::close(std::exchange(socket_, -1));
  why_closed_ = why;
  out_.clear();
  sent_ = 0;
}

Result<Wire> Wire::connect(const std::string& address) {
  IMPRINT_ASSIGN(const Addresses found, look_up(address, 0, kOfLearner));
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return fail_at(address, std::strerror(errno), kOfLearner);
  if (::connect(socket, found->ai_addr, found->ai_addrlen) != 0) {
    const std::string cause = std::strerror(errno);
    ::close(socket);
    return fail_at(address, cause, kOfLearner);
  }
  return Wire(socket);
}

void Wire::send(MessageKind kind, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!open()) return;
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
  const WireHead first{.kind = kind, .bytes = head.size() + body.size()};
  const auto* raw = reinterpret_cast<const std::byte*>(&first);
  out_.insert(out_.end(), raw, raw + sizeof first);
  out_.insert(out_.end(), head.begin(), head.end());
  out_.insert(out_.end(), body.begin(), body.end());
  flush();
}

void Wire::flush() {
  while (open() && unsent() > 0) {
    const ssize_t count = ::send(socket_, out_.data() + sent_, unsent(), MSG_NOSIGNAL);
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (is_temporary(errno)) {
      return;
    } else {
      close(std::strerror(errno));
    }
  }
}

void Wire::receive() {
  if (read_ > 0) {
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(read_));
    read_ = 0;
  }
  WireHead head;
  while (open()) {
    if (in_.size() >= sizeof head) {
      std::memcpy(&head, in_.data(), sizeof head);
      if (head.magic != kMagic || head.bytes > most_bytes_) return close("sent bytes that are no message");
      if (in_.size() >= sizeof head + head.bytes) return;  // one is there
    }
    const std::size_t before = in_.size();
    in_.resize(before + kAtOnce);  // memory grows with what arrives, not with what a head claims
    const ssize_t count = ::recv(socket_, in_.data() + before, kAtOnce, 0);
    in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count > 0) continue;
    if (count < 0 && is_temporary(errno)) return;
    close(count == 0 ? "the connection was closed" : std::strerror(errno));
  }
}

std::optional<Message> Wire::next() {
  WireHead head;
  if (in_.size() - read_ < sizeof head) return std::nullopt;
  std::memcpy(&head, in_.data() + read_, sizeof head);
  if (head.magic != kMagic || head.bytes > most_bytes_) {
    close("sent bytes that are no message");
    in_.clear();
    read_ = 0;
    return std::nullopt;
  }
  if (in_.size() - read_ < sizeof head + head.bytes) return std::nullopt;
  const auto first = in_.begin() + static_cast<std::ptrdiff_t>(read_ + sizeof head);
  read_ += sizeof head + head.bytes;
  return Message{head.kind, {first, first + static_cast<std::ptrdiff_t>(head.bytes)}};
}

Result<Door> Door::open(const std::string& address) {
  IMPRINT_ASSIGN(const Addresses found, look_up(address, AI_PASSIVE, kOwn));
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return fail_at(address, std::strerror(errno), kOwn);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  if (::bind(socket, found->ai_addr, found->ai_addrlen) != 0 || ::listen(socket, 1024) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    const std::string cause = std::strerror(errno);
    ::close(socket);
    return fail_at(address, cause, kOwn);
  }
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  return Door(socket, text(split_address(address).first, ":", ntohs(bound.sin_port)));
}

Door::Door(Door&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      address_(std::move(other.address_)),
      problem_(std::move(other.problem_)),
      closed_until_(other.closed_until_) {}

Door::~Door() {
  if (socket_ >= 0) ::close(socket_);
}

int Door::socket() const { return Clock::now() < closed_until_ ? -1 : socket_; }

std::optional<Wire> Door::accept() {
  const int socket = ::accept(socket_, nullptr, nullptr);
  if (socket >= 0) return Wire(socket);
  // The connection stays in the queue. One that went before it was accepted is no problem.
  if (!is_temporary(errno) && errno != ECONNABORTED && Clock::now() >= closed_until_) {
    problem_ = std::strerror(errno);
    closed_until_ = Clock::now() + kClosed;
  }
  return std::nullopt;
}

void wait_for_news(std::span<const int> sockets, int milliseconds) {
  std::vector<pollfd> watched;
  for (const int socket : sockets)
    if (socket >= 0) watched.push_back({socket, POLLIN, 0});
  ::poll(watched.data(), watched.size(), milliseconds);
}

}  // namespace imprint::studio
