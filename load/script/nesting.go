package script

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parsing and compiling go down the tree of a source by recursion, and a Go
// program whose stack reaches its limit cannot be saved. So sources are
// measured before they are parsed: open brackets, and operators of expressions
// that have not ended, each stand for some calls on the stack.
const (
	bracketCost  = 10 // an open bracket, in the units of an operator
	maxNesting   = 10_000
	nestingLimit = maxNesting * bracketCost // some 300 MiB of stack at worst
)

// checkNesting refuses a source that is nested too deeply to be parsed.
func checkNesting(name, text string) error {
	if len(text) < maxNesting {
		return nil
	}
	s := nestingScanner{text: text, links: []int{0}}
	if line, ok := s.scan(); !ok {
		return fmt.Errorf("SyntaxError: %s:%d: brackets or operators are nested more than %d deep; split the expression", name, line, maxNesting)
	}
	return nil
}

// nestingScanner reads just enough of JavaScript to skip what brackets do not
// mean: text, comments and regular expressions.
type nestingScanner struct {
	text    string
	at      int
	links   []int  // operators since the last separator, by open bracket
	open    []byte // '`' is the ${ of a template
	cost    int
	operand bool // the last token ends an operand, so that / divides
}

// scan returns the line at which the limit is passed.
func (s *nestingScanner) scan() (line int, ok bool) {
	for s.at < len(s.text) {
		s.step()
		if s.cost > nestingLimit {
			return 1 + strings.Count(s.text[:min(s.at, len(s.text))], "\n"), false
		}
	}
	return 0, true
}

func (s *nestingScanner) step() {
	c := s.text[s.at]
	rest := s.text[s.at:]
	switch {
	case strings.HasPrefix(rest, "//"):
		s.skipTo("\n")
	case strings.HasPrefix(rest, "/*"):
		s.skipTo("*/")
	case c == '"' || c == '\'':
		s.skipText(c)
	case c == '`':
		s.at++
		s.template()
	case c == '/' && !s.operand:
		s.skipRegexp()
	case c == '(' || c == '[' || c == '{':
		s.push(c)
	case c == ')' || c == ']' || c == '}':
		s.pop()
	case c == ';' || c == ',':
		s.at++
		s.cost -= s.links[len(s.links)-1]
		s.links[len(s.links)-1] = 0
		s.operand = false
	case c <= ' ':
		s.at++
	case isWord(rest):
		s.word()
	default:
		s.at++
		s.link()
	}
}

func (s *nestingScanner) link() {
	s.links[len(s.links)-1]++
	s.cost++
	s.operand = false
}

func (s *nestingScanner) push(bracket byte) {
	s.at++
	s.open = append(s.open, bracket)
	s.links = append(s.links, 0)
	s.cost += bracketCost
	s.operand = false
}

func (s *nestingScanner) pop() {
	closed := s.text[s.at]
	s.at++
	s.operand = closed != '}' // after a block a regular expression is likelier
	if len(s.open) == 0 {
		return // an error that the parser will report
	}
	last := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	s.cost -= bracketCost + s.links[len(s.links)-1]
	s.links = s.links[:len(s.links)-1]
	if last == '`' && closed == '}' {
		s.template()
	}
}

// template skips the text of a template up to its end or the next ${.
func (s *nestingScanner) template() {
	for ; s.at < len(s.text); s.at++ {
		switch {
		case s.text[s.at] == '\\':
			s.at++
		case s.text[s.at] == '`':
			s.at++
			s.operand = true
			return
		case strings.HasPrefix(s.text[s.at:], "${"):
			s.at++
			s.push('`')
			return
		}
	}
}

func (s *nestingScanner) skipTo(end string) {
	if i := strings.Index(s.text[s.at:], end); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.text)
}

// skipText skips a quoted text; without an end it stops at the line's.
func (s *nestingScanner) skipText(quote byte) {
	for s.at++; s.at < len(s.text) && s.text[s.at] != quote && s.text[s.at] != '\n'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	s.operand = true
}

func (s *nestingScanner) skipRegexp() {
	class := false
	for s.at++; s.at < len(s.text) && s.text[s.at] != '\n'; s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			s.at++
			s.operand = true
			return
		}
	}
	s.operand = true
}

// linking are the words that, like operators, put what follows below them.
const linking = " await case delete do else for if in instanceof new of return throw typeof void while with yield "

func (s *nestingScanner) word() {
	start := s.at
	for s.at < len(s.text) && isWord(s.text[s.at:]) {
		_, size := utf8.DecodeRuneInString(s.text[s.at:])
		s.at += size
	}
	if strings.Contains(linking, " "+s.text[start:s.at]+" ") {
		s.link()
		return
	}
	s.operand = true
}

func isWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}
