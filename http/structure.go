package gateway

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"mirador/sir"
)

// getStructure answers GET /apps/{app}/sir. The structure of a program is large and seldom
// changes, so the reply has an entity tag, and is compressed on request.
func (h *documentHandlers) getStructure(x *exchange) error {
	app, err := h.findApp(x)
	if err != nil {
		return err
	}
	part, err := partOf(x.r.URL)
	if err != nil {
		return err
	}
	structure, tag, err := h.backend.Structure(x.r.Context(), app.Name, nil, h.configured)
	if err != nil {
		return err
	}
	tag += part.tag
	if unchanged(x, tag) {
		return nil // to find the regions inside all functions takes seconds
	}
	if part.depth > 1 {
		if structure, err = h.backend.Inside(x.r.Context(), app.Name, structure.Around(part.prefix)); err != nil {
			return err
		}
	}
	structure = part.of(structure)
	if part.placements {
		if err := h.backend.FindPlacements(x.r.Context(), app.Name, structure); err != nil {
			return err
		}
	}
	return sendStructure(x, structure, tag)
}

// partOfStructure says which part of a structure a request asks for: without parameters, all functions.
type partOfStructure struct {
	depth  int // 1: functions only
	grep   *regexp.Regexp
	prefix string
	most   int    // 0: all
	tag    string // differs from that of other parts
	// placements asks where regions can be measured. It takes a disassembly, so without the parameter it is only
	// asked about the regions inside few functions, and not by a shell that completes an id.
	placements bool
}

// Limits of the parameters of a request.
const (
	mostUnits    = 1000
	mostDepth    = 1000
	longestQuery = 1000
)

func partOf(u *url.URL) (part partOfStructure, err error) {
	query := u.Query()
	refuse := func(format string, args ...any) (partOfStructure, error) {
		return part, NewFault(http.StatusBadRequest, fmt.Sprintf(format, args...))
	}
	if part.depth, err = strconv.Atoi(cmp.Or(query.Get("depth"), "1")); err != nil || part.depth < 1 || part.depth > mostDepth {
		return refuse("%q is no depth: 1 is functions, 2 also the regions inside them, and so on up to %d", query.Get("depth"), mostDepth)
	}
	if query.Has("prefix") || query.Has("most") {
		part.prefix = query.Get("prefix")
		if part.most, err = strconv.Atoi(cmp.Or(query.Get("most"), strconv.Itoa(mostUnits))); err != nil || part.most < 1 || part.most > mostUnits {
			return refuse("%q is no number of units: most is from 1 to %d", query.Get("most"), mostUnits)
		}
	}
	if text := query.Get("grep"); text != "" {
		if len(text) > longestQuery {
			return refuse("the expression of grep is longer than %d bytes", longestQuery)
		}
		if part.grep, err = regexp.Compile(text); err != nil {
			return refuse("%q is no regular expression: %v", text, err)
		}
	}
	part.placements = part.depth > 1 && (part.grep != nil || query.Has("prefix") && !query.Has("most"))
	if text := query.Get("placements"); text != "" {
		if part.placements, err = strconv.ParseBool(text); err != nil {
			return refuse("%q is no value of placements: it is true or false", text)
		}
	}
	if len(query) > 0 {
		part.tag = fmt.Sprintf("-%x", sha256.Sum256([]byte(query.Encode())))
	}
	return part, nil
}

// of returns the part of a structure.
func (part *partOfStructure) of(s *sir.Structure) *sir.Structure {
	if part.depth > 1 {
		s = s.Cut(part.depth)
	}
	if part.grep != nil {
		s = s.Where(func(r *sir.Region) bool { return part.grep.MatchString(r.ID) || part.grep.MatchString(r.Name) })
	}
	if part.most > 0 {
		s = s.WithPrefix(part.prefix, part.most)
	}
	return s
}

// unchanged answers a request of a client that has the document with a tag, and reports whether it did.
func unchanged(x *exchange, tag string) bool {
	if x.r.Method == http.MethodPost || !matchesTag(x.r.Header.Get("If-None-Match"), quoted(tag)) {
		return false
	}
	setTag(x, tag)
	x.WriteHeader(http.StatusNotModified)
	return true
}

func quoted(tag string) string { return `"` + tag + `"` }

func setTag(x *exchange, tag string) {
	x.Header().Set("ETag", quoted(tag))
	x.Header().Set("Vary", "Accept-Encoding")
}

func sendStructure(x *exchange, structure *sir.Structure, tag string) error {
	setTag(x, tag)
	out := takeBuffer()
	defer giveBuffer(out)
	if err := sir.Encode(out, structure); err != nil {
		return err
	}
	sendCompressed(x, typeXML, out.Bytes())
	return nil
}

// matchesTag reads If-None-Match by the weak comparison (RFC 9110, 13.1.2).
func matchesTag(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
