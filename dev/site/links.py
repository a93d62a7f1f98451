"""Points links that leave docs/, such as those to source files, at the repository."""

import posixpath
import re

REPOSITORY = "https://github.com/linerate/linerate/blob/main/"
LINK = re.compile(r"(\]\()(\.\./[^)#\s]+)((?:#[^)\s]*)?\))")


def on_page_markdown(markdown, page, **_):
    directory = posixpath.dirname("docs/" + page.file.src_uri)

    def target(match):
        path = posixpath.normpath(posixpath.join(directory, match[2]))
        if path.startswith("docs/"):
            return match[0]
        return match[1] + REPOSITORY + path + match[3]

    return LINK.sub(target, markdown)
