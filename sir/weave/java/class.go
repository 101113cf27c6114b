package java

import (
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf16"

	"mirador/sir/weave/library"
	"mirador/sir/weave/woven"
)

// classBeside returns the name of the class that a source uses: there is one for each source, in its package.
func classBeside(file string) string {
	return strings.TrimSuffix(path.Base(file), path.Ext(file)) + "Mirador"
}

var inPackage = regexp.MustCompile(`^[ \t]*package[ \t]+([\w.$]+)[ \t]*;`)

// Beside returns a class beside each source that has regions. The class loads a library with their markers.
func Beside(p *woven.Program, regions [][]*woven.Region) (files []woven.File) {
	for i, s := range p.Sources {
		if s.Language == "java" && !s.Fixed {
			files = append(files, woven.File{Source: i, Suffix: "Mirador.java", Text: classText(p.ID, s, regions[i])})
		}
	}
	return files
}

// classText returns the text of a class beside a source.
func classText(weaving string, s woven.Source, regions []*woven.Region) []byte {
	class, within := classBeside(s.Path), ""
	for _, line := range woven.LinesWith(s.Text, "package") {
		if found := inPackage.FindSubmatch(line); found != nil {
			within = string(found[1])
			break
		}
	}
	l := &library.Library{Weaving: weaving}
	var methods, code strings.Builder
	for _, r := range regions {
		for _, what := range []string{"begin", "end"} {
			name := woven.MarkerName(what[0], weaving, r.ID)
			l.Names = append(l.Names, "Java_"+native(strings.TrimPrefix(within+"."+class, "."))+"_"+name)
			l.Markers = append(l.Markers, what+":"+r.Note())
			fmt.Fprintf(&methods, "  static native void %s();\n", name)
		}
	}
	text := base64.StdEncoding.EncodeToString(l.Bytes())
	for len(text) > 0 {
		n := min(len(text), 48_000)
		fmt.Fprintf(&code, "        %q,\n", text[:n])
		text = text[n:]
	}
	if within != "" {
		within = "package " + within + ";\n"
	}
	return fmt.Appendf(nil, javaClass, within, class, path.Base(s.Path), &methods, &code)
}

// native returns a name as it is in the names of native methods.
func native(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '.':
			b.WriteByte('_')
		case r == '_':
			b.WriteString("_1")
		case r < 0x80 && r != '$':
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "_0%04x", unit)
			}
		}
	}
	return b.String()
}

// javaClass is compiled with any version of Java from 8.
const javaClass = `%[1]s
/**
 * Begins and ends the regions that Mirador has woven into %[3]s: by native methods of a library that does
 * nothing, in which a monitor finds them. On other machines than x86-64 with Linux regions have no code.
 */
final class %[2]s {
  static final boolean on = load();

%[4]s
  private static boolean load() {
    try {
      String[] parts = {
%[5]s      };
      java.nio.file.Path file = java.nio.file.Files.createTempFile("mirador-", ".so");
      try {
        java.nio.file.Files.write(file, java.util.Base64.getDecoder().decode(String.join("", parts)));
        System.load(file.toString());
      } finally {
        java.nio.file.Files.delete(file);
      }
      return true;
    } catch (java.io.IOException | LinkageError | SecurityException e) {
      return false;
    }
  }
}
`
