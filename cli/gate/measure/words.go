package measure

import (
	"errors"
	"fmt"
	"strings"
)

// port stands in commands for a free port that the gate chooses for each process.
const port = "{port}"

// words splits a command like a shell, with quotes and backslashes. The gate starts programs itself,
// to stop them before their first instruction, so it has no other syntax of shells.
func words(command string) (list []string, err error) {
	var word strings.Builder
	begun, quote, escaped := false, rune(0), false
	for _, r := range command {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && strings.ContainsRune(" \t\n", r):
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		case quote == 0 && strings.ContainsRune("|&;<>$`", r):
			return nil, fmt.Errorf("the command %q contains %q: the gate starts the program itself, without a shell; put the rest into a script for --load, or quote it", command, r)
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("the command %q ends inside of quotes", command)
	}
	if begun {
		list = append(list, word.String())
	}
	if len(list) == 0 {
		return nil, errors.New("the command is empty")
	}
	return list, nil
}
