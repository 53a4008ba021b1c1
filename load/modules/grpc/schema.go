package k6grpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"github.com/grafana/sobek"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// schema is what a client knows of services and messages.
type schema struct {
	methods map[string]protoreflect.MethodDescriptor // by "/package.Service/Method"
	files   *protoregistry.Files
}

// add takes files and all that they import. A file that is known already, by
// its name, is left as it is.
func (s *schema) add(files ...protoreflect.FileDescriptor) error {
	if s.methods == nil {
		s.methods, s.files = map[string]protoreflect.MethodDescriptor{}, &protoregistry.Files{}
	}
	for _, f := range files {
		if _, err := s.files.FindFileByPath(f.Path()); err == nil {
			continue
		}
		for i := range f.Imports().Len() {
			if err := s.add(f.Imports().Get(i).FileDescriptor); err != nil {
				return err
			}
		}
		if f.IsPlaceholder() {
			continue
		}
		if err := s.files.RegisterFile(f); err != nil {
			return fmt.Errorf("register %s: %w", f.Path(), err)
		}
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				s.methods[nameOf(m)] = m
			}
		}
	}
	return nil
}

func nameOf(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

// method finds a method by name, with or without the leading slash.
func (s *schema) method(name string) (protoreflect.MethodDescriptor, error) {
	m := s.methods["/"+strings.TrimPrefix(name, "/")]
	if m == nil {
		return nil, fmt.Errorf("method %q is not known: load its .proto file or connect with reflect: true", name)
	}
	return m, nil
}

// types resolves messages within google.protobuf.Any.
func (s *schema) types() *dynamicpb.Types {
	if s.files == nil {
		return dynamicpb.NewTypes(&protoregistry.Files{})
	}
	return dynamicpb.NewTypes(s.files)
}

// load reads .proto files: load([importPath …], file …).
func (c *client) load(call sobek.FunctionCall) sobek.Value {
	if !c.vu.host.InInit() {
		c.vu.throw("client.load: files can be loaded in init code only")
	}
	var roots []string
	if a := call.Argument(0); !wire.Absent(a) {
		roots = texts(a)
	}
	if len(call.Arguments) < 2 {
		c.vu.throw("client.load: want a list of import paths and at least one file, got no file")
	}
	var files []string
	for _, a := range call.Arguments[1:] {
		files = append(files, a.String())
	}
	compiled, err := c.vu.module.compiled.get(roots, files, func() ([]protoreflect.FileDescriptor, error) {
		return compile(c.vu.host.Context(), c.vu.host.ReadFile, roots, files)
	})
	return c.loaded("client.load", compiled, err)
}

// loadProtoset reads a descriptor set, as protoc --descriptor_set_out writes it.
func (c *client) loadProtoset(call sobek.FunctionCall) sobek.Value {
	if !c.vu.host.InInit() {
		c.vu.throw("client.loadProtoset: files can be loaded in init code only")
	}
	name := call.Argument(0).String()
	compiled, err := c.vu.module.compiled.get([]string{"protoset"}, []string{name}, func() ([]protoreflect.FileDescriptor, error) {
		raw, err := c.vu.host.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return parseSet(name, raw)
	})
	return c.loaded("client.loadProtoset", compiled, err)
}

func texts(v sobek.Value) []string {
	list, ok := v.Export().([]any)
	if !ok {
		return []string{v.String()}
	}
	var all []string
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// loaded adds files to the schema and describes their methods to the script.
func (c *client) loaded(what string, files []protoreflect.FileDescriptor, err error) sobek.Value {
	if err == nil {
		err = c.schema.add(files...)
	}
	if err != nil {
		c.vu.throw("%s: %w", what, err)
	}
	var methods []any
	for _, f := range files {
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				methods = append(methods, map[string]any{"package": string(f.Package()), "service": string(service.Name()),
					"fullMethod": nameOf(m), "name": string(m.Name()), "isClientStream": m.IsStreamingClient(), "isServerStream": m.IsStreamingServer()})
			}
		}
	}
	return c.vu.host.Runtime().ToValue(methods)
}

// compiledSchemas remembers what was compiled, as all VUs load the same files.
type compiledSchemas struct {
	mu    sync.Mutex
	byKey map[string]*compiling
}

type compiling struct {
	once  sync.Once
	files []protoreflect.FileDescriptor
	err   error
}

func (s *compiledSchemas) get(roots, files []string, compile func() ([]protoreflect.FileDescriptor, error)) ([]protoreflect.FileDescriptor, error) {
	key := fmt.Sprintf("%q %q", roots, files)
	s.mu.Lock()
	c := s.byKey[key]
	if c == nil {
		c = &compiling{}
		s.byKey[key] = c
	}
	s.mu.Unlock()
	c.once.Do(func() { c.files, c.err = compile() })
	return c.files, c.err
}

// compile compiles .proto files that are found below the roots, or beside the
// script without any. Google's own imports need no file.
func compile(ctx context.Context, read func(string) ([]byte, error), roots, files []string) ([]protoreflect.FileDescriptor, error) {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var reading sync.Mutex // the host is not safe for concurrent use
	find := func(name string) (protocompile.SearchResult, error) {
		reading.Lock()
		defer reading.Unlock()
		var missing []error
		for _, root := range roots {
			raw, err := read(path.Join(root, name))
			if err == nil {
				return protocompile.SearchResult{Source: io.NopCloser(bytes.NewReader(raw))}, nil
			}
			missing = append(missing, err)
		}
		return protocompile.SearchResult{}, errors.Join(missing...)
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(find)), MaxParallelism: 1}
	linked, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, err
	}
	all := make([]protoreflect.FileDescriptor, len(linked))
	for i, f := range linked {
		all[i] = f
	}
	return all, nil
}

// parseSet reads a FileDescriptorSet.
func parseSet(name string, raw []byte) ([]protoreflect.FileDescriptor, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("%s: want a descriptor set as protoc --include_imports --descriptor_set_out writes it: %w", name, err)
	}
	return link(name, &set)
}

func link(name string, set *descriptorpb.FileDescriptorSet) ([]protoreflect.FileDescriptor, error) {
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []protoreflect.FileDescriptor
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		all = append(all, f)
		return true
	})
	slices.SortFunc(all, func(a, b protoreflect.FileDescriptor) int { return strings.Compare(a.Path(), b.Path()) })
	return all, nil
}
