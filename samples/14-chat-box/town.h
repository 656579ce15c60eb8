#pragma once
// Questions and answers about a small town, made up. The only text that the network of
// the sample learns from.

#include <string>
#include <vector>

struct Talk {
  std::string question, answer;
};

std::vector<Talk> talk_of_the_town();  // four ways to ask for a fact, one after the other
