#pragma once
// Tables of measurements, written from files. A page names the file and the rows:
//
//   <!-- table: FILE | ROW... | columns: COLUMN... -->
//   (the table, written by the command)
//   <!-- end of table -->
//
// FILE is relative to the page: what `imprint bench --json` wrote, or a file with "columns" and "rows" of
// text. ROW is a name or its beginning; without any, all rows are taken. COLUMN is one of kColumns in the
// source; a file of text has its own.

#include <filesystem>
#include <string>

#include "compute/base/result.h"
#include "tools/pages/page.h"

namespace imprint::pages {

// The page's text with each table written again.
Result<std::string> with_tables(const std::filesystem::path& root, const Page& page);

}  // namespace imprint::pages
