#include "town.h"

#include <array>

namespace {

struct Place {
  const char *name, *where, *keeper;
};
constexpr std::array<Place, 8> kPlaces{{{"inn", "by the river", "mara"},
                                        {"smithy", "behind the wall", "odo"},
                                        {"market", "in the middle of town", "lena"},
                                        {"harbour", "down at the sea", "captain brand"},
                                        {"temple", "on the hill", "sister ilse"},
                                        {"mill", "in the fields", "old piet"},
                                        {"gate", "to the north", "a tired guard"},
                                        {"tower", "in the dark wood", "a cold wind"}}};
struct Ware {
  const char *name, *price;
};
constexpr std::array<Ware, 6> kWares{
    {{"sword", "40"}, {"shield", "25"}, {"potion", "8"}, {"rope", "2"}, {"lamp", "5"}, {"map", "12"}}};

constexpr std::array<const char*, 4> kWhere{"where is the *?", "where can i find the *?",
                                            "how do i get to the *?", "i am looking for the *."};
constexpr std::array<const char*, 4> kWho{"who keeps the *?", "who is at the *?", "who runs the *?",
                                          "whom do i meet at the *?"};
constexpr std::array<const char*, 4> kPrice{"how much is a *?", "what does a * cost?", "i want to buy a *.",
                                            "the price of a *?"};

std::string about(const std::string& words, const std::string& name) {
  const std::size_t star = words.find('*');
  return words.substr(0, star) + name + words.substr(star + 1);
}

}  // namespace

std::vector<Talk> talk_of_the_town() {
  std::vector<Talk> talk;
  const auto add = [&](const std::array<const char*, 4>& forms, const std::string& name,
                       const std::string& answer) {
    for (const char* form : forms) talk.push_back({about(form, name), answer});
  };
  for (const Place& place : kPlaces) {
    const std::string name = place.name;
    add(kWhere, name, "the " + name + " is " + place.where + ".");
    add(kWho, name, "at the " + name + " you meet " + place.keeper + ".");
  }
  for (const Ware& ware : kWares)
    add(kPrice, ware.name, std::string("a ") + ware.name + " is " + ware.price + " gold.");
  return talk;
}
