package session

import (
	"context"
	"slices"
	"strings"
	"time"

	gateway "mirador/http"
	"mirador/omis/service"
)

// askingTime limits how long TAB waits for the gateway.
const askingTime = 2 * time.Second

// completer completes the word before the cursor when TAB is typed, and shows the choices if there are several.
func (s *Session) completer(ctx context.Context) func(show func(string)) completion {
	return func(show func(string)) completion {
		return func(line string, pos int, key rune) (string, int, bool) {
			if key != '\t' {
				return "", 0, false
			}
			start := wordStart(line[:pos])
			word := line[start:pos]
			choices := slices.DeleteFunc(s.choices(ctx, line[:start]), func(c string) bool { return !strings.HasPrefix(c, word) })
			if len(choices) == 0 {
				return line, pos, true
			}
			common := commonPrefix(choices)
			if common == word && len(choices) > 1 {
				show(strings.Join(choices, "  ") + "\n")
			}
			return line[:start] + common + line[pos:], start + len(common), true
		}
	}
}

// wordStart returns the position where the last word of a text begins.
func wordStart(text string) int {
	return strings.LastIndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) + 1
}

// choices returns the words that may follow a text.
func (s *Session) choices(ctx context.Context, before string) []string {
	ctx, cancel := context.WithTimeout(ctx, askingTime)
	defer cancel()
	switch place := placeAfter(before); place {
	case inParameters:
		// The reply names the current nodes, processes and threads.
		if _, r, err := s.send(ctx, ": node_get_info([],0) proc_get_info([],0) thread_get_info([],0)"); err == nil {
			s.names.forgetObjects()
			s.names.saw(r)
		}
		return s.names.known()
	case inContext:
		var list []string
		for _, p := range service.Standard() {
			list = append(list, p.Name)
		}
		return list
	case inText:
		return nil
	default:
		rows, err := s.names.table(ctx)
		if err != nil {
			return nil
		}
		return place.services(rows)
	}
}

// linePlace is the syntactic position of a word.
type linePlace int

const (
	atEvent linePlace = iota
	atAction
	inParameters
	inContext // after "$"
	inText    // in a string
	inHelp
)

// placeAfter returns the position after a text.
func placeAfter(text string) linePlace {
	if strings.TrimSpace(text) == "help" {
		return inHelp
	}
	depth, quoted, place := 0, false, atEvent
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ':' && depth == 0:
			place = atAction
		}
	}
	switch {
	case quoted:
		return inText
	case depth > 0 && strings.HasSuffix(text, "$"):
		return inContext
	case depth > 0:
		return inParameters
	}
	return place
}

// services returns the names of the services that may occur at a position, each with the text that
// leads to its parameters.
func (p linePlace) services(rows []gateway.Service) []string {
	var list []string
	for _, s := range rows {
		switch isEvent := s.Kind == "event"; {
		case p == inHelp:
			list = append(list, s.Name)
		case s.Support != "unsupported" && isEvent == (p == atEvent):
			list = append(list, s.Name+"(")
		}
	}
	if p == atEvent {
		list = append(list, "help ", "exit")
	}
	return list
}

func commonPrefix(list []string) string {
	common := list[0]
	for _, s := range list[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	return common
}
