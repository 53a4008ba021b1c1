package script

import (
	"errors"
	"fmt"
	"path"
	"strings"

	esbuild "github.com/evanw/esbuild/pkg/api"
	"github.com/grafana/sobek"
	"github.com/grafana/sobek/ast"
	"github.com/grafana/sobek/parser"
)

// Source says where a script and the files beside it come from.
type Source struct {
	// Path is the path of the entry script, with forward slashes. Relative
	// imports and open() start from its directory, and positions in messages
	// show it as it is.
	Path string
	// Code is the text of the entry script; nil reads it from Path.
	Code []byte
	// ReadFile returns the content of a file. It is called in the first init
	// only.
	ReadFile func(path string) ([]byte, error)
}

// text returns a file of the source.
func (s Source) text(name string) ([]byte, error) {
	if name == s.Path && s.Code != nil {
		return s.Code, nil
	}
	if s.ReadFile == nil {
		return nil, fmt.Errorf("open %s: this script has no files beside it", name)
	}
	return s.ReadFile(name)
}

// locate resolves a name that a file of the script gives to another file.
func locate(from, name string) string {
	name = strings.TrimPrefix(name, "file://")
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(path.Dir(from), name)
}

// compiled is a file that was parsed once, for all VUs.
type compiled struct {
	module *sobek.SourceTextModuleRecord // an ES module, or
	common *sobek.Program                // a function (module, exports, require)
}

// compile parses a file. A file without import, export or top-level await is
// a CommonJS module.
func compile(name string, code []byte, resolve sobek.HostResolveImportedModuleFunc) (compiled, error) {
	text, sourceMap := string(code), []byte(nil)
	if err := checkNesting(name, text); err != nil {
		return compiled{}, err
	}
	if ext := path.Ext(name); ext == ".ts" || ext == ".mts" {
		var err error
		if text, sourceMap, err = stripTypes(name, text); err != nil {
			return compiled{}, err
		}
	}
	// Maps that files name themselves are not followed: nothing may be read
	// behind the back of Source.
	maps := parser.WithSourceMapLoader(func(string) ([]byte, error) { return sourceMap, nil })
	program, moduleErr := parser.ParseFile(nil, name, text, 0, parser.IsModule, maps)
	if moduleErr == nil && (len(program.ImportEntries)+len(program.ExportEntries) > 0 || program.HasTLA) {
		module, err := sobek.ModuleFromAST(program, resolve)
		return compiled{module: module}, fromJS(err)
	}
	program, err := parser.ParseFile(nil, name, text, 0, maps)
	if err != nil {
		return compiled{}, fromJS(moduleOrScriptError(moduleErr, err))
	}
	function, err := asFunction(program, text)
	if err != nil {
		return compiled{}, err
	}
	common, err := sobek.CompileAST(function, false)
	return compiled{common: common}, fromJS(err)
}

// moduleOrScriptError picks the error of the reading that went further.
func moduleOrScriptError(module, script error) error {
	var m, s parser.ErrorList
	if errors.As(module, &m) && errors.As(script, &s) && len(m) > 0 && len(s) > 0 && m[0].Position.Line < s[0].Position.Line {
		return script
	}
	if module != nil {
		return module
	}
	return script
}

// asFunction makes the program the body of a function whose parameters are
// what CommonJS files see. It is done on the tree, so that no position moves.
func asFunction(p *ast.Program, text string) (*ast.Program, error) {
	fn, err := parser.ParseFunction("module, exports, require", "")
	if err != nil {
		return nil, fmt.Errorf("make the wrapper of CommonJS: %w", err)
	}
	fn.Body.List, fn.DeclarationList, fn.Source = p.Body, p.DeclarationList, text
	return &ast.Program{Body: []ast.Statement{&ast.ExpressionStatement{Expression: fn}}, File: p.File}, nil
}

// stripTypes turns TypeScript into JavaScript and returns the map from
// positions in the one to positions in the other.
func stripTypes(name, text string) (code string, sourceMap []byte, err error) {
	out := esbuild.Transform(text, esbuild.TransformOptions{
		Loader: esbuild.LoaderTS, Target: esbuild.ESNext, Sourcefile: path.Base(name),
		Sourcemap: esbuild.SourceMapExternal, SourcesContent: esbuild.SourcesContentExclude, LogLevel: esbuild.LogLevelSilent,
	})
	if len(out.Errors) > 0 {
		m := out.Errors[0]
		if m.Location == nil {
			return "", nil, fmt.Errorf("SyntaxError: %s: %s", name, m.Text)
		}
		return "", nil, fmt.Errorf("SyntaxError: %s:%d:%d: %s", name, m.Location.Line, m.Location.Column+1, m.Text)
	}
	return string(out.Code) + "\n//# sourceMappingURL=" + path.Base(name) + ".map\n", out.Map, nil
}
