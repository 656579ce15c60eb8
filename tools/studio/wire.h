#pragma once
// Messages between an actor and its learner over TCP. Not MPI: MPI ends all processes when one dies, and an
// actor may come, die and come again. The only file of the studio with sockets is wire.cpp. It knows no
// secret and no cipher: for networks that trust each other, as MPI.
//
// All functions return at once, except connect().
//
// A message has at most 2 GiB, and before the other end is known 4 KiB. What is received takes memory and
// time in proportion to the bytes that arrived, whatever a head claims: at most four times a message, and a
// constant.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/base/result.h"

namespace imprint::studio {

enum class MessageKind : std::uint32_t {
  hello = 1,   // of an actor: Hello
  refused,     // of a learner: why, as text; no start of this actor helps
  weights,     // of a learner: WeightsHead, then weights
  experience,  // of an actor: ExperienceHead, then steps
  taken,       // of a learner: TakenHead
  over         // of a learner: the run is over
};

struct Message {
  MessageKind kind = MessageKind::hello;
  std::vector<std::byte> bytes;
};

// One end of a connection. Closed once the other end is gone, or sent what is no message.
class Wire {
 public:
  Wire() = default;
  explicit Wire(int socket);  // takes it over
  Wire(Wire&& other) noexcept;
  Wire& operator=(Wire&& other) noexcept;
  ~Wire();

  // address: HOST:PORT. Errors: io (with the address and the cause).
  static Result<Wire> connect(const std::string& address);

  bool open() const { return socket_ >= 0; }
  int socket() const { return socket_; }
  const std::string& why_closed() const { return why_closed_; }
  void close(const std::string& why);

  // Keeps the message, and sends what the network takes now.
  void send(MessageKind kind, std::span<const std::byte> head, std::span<const std::byte> body = {});
  void flush();
  std::size_t unsent() const { return out_.size() - sent_; }
  // Reads what has arrived, up to some messages: the rest waits, in the end at the sender.
  void receive();
  std::optional<Message> next();
  // Longer messages close the connection: from one that is not known yet, and from one that is.
  void take_short_messages() { most_bytes_ = kShortMessage; }
  void take_long_messages() { most_bytes_ = kLongMessage; }

 private:
  static constexpr std::uint64_t kShortMessage = 4096;
  static constexpr std::uint64_t kLongMessage = std::uint64_t{1} << 31;  // weights of 500 million numbers

  int socket_ = -1;
  std::uint64_t most_bytes_ = kLongMessage;  // of a message
  std::string why_closed_;
  std::vector<std::byte> out_, in_;
  std::size_t sent_ = 0, read_ = 0;
};

// Where actors connect.
class Door {
 public:
  // address: HOST or HOST:PORT; without a port the system chooses one. Errors: io.
  static Result<Door> open(const std::string& address);
  Door(Door&& other) noexcept;
  Door& operator=(Door&&) = delete;
  ~Door();

  const std::string& address() const { return address_; }  // HOST:PORT
  // To wait at. -1 for a second after the system had no room for a connection: waiting would not wait.
  int socket() const;
  std::optional<Wire> accept();
  // Why connections cannot be accepted, once; or "".
  std::string take_problem() { return std::exchange(problem_, {}); }

 private:
  using Clock = std::chrono::steady_clock;
  Door(int socket, std::string address) : socket_(socket), address_(std::move(address)) {}
  int socket_ = -1;
  std::string address_, problem_;
  Clock::time_point closed_until_{};
};

// Returns when one of them has news, or when the time is over.
void wait_for_news(std::span<const int> sockets, int milliseconds);

}  // namespace imprint::studio
