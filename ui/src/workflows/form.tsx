/** The form of an input, from its JSON Schema: in a chunk of its own, which only the start of a run loads. */

import withTheme from "@rjsf/core/lib/withTheme.js";
import {
  type ArrayFieldTemplateProps,
  type BaseInputTemplateProps,
  type FieldTemplateProps,
  getInputProps,
  type ObjectFieldTemplateProps,
  type RJSFSchema,
  type WidgetProps,
} from "@rjsf/utils";
import { Plus, X } from "lucide-react";
import type { ReactNode } from "react";
import { Button, IconButton } from "@/ui/button";
import { fieldClass } from "@/ui/fields";
import { fieldOrder, plain } from "./plain";
import { validator } from "./validator";

function FieldTemplate({
  id,
  label,
  children,
  errors,
  description,
  hidden,
  required,
  displayLabel,
}: FieldTemplateProps) {
  if (hidden) return <div className="hidden">{children}</div>;
  return (
    <div className="space-y-1">
      {displayLabel && label && (
        <label htmlFor={id} className="block text-xs font-medium text-ink-2">
          {label}
          {required && <span className="text-danger"> *</span>}
        </label>
      )}
      {displayLabel && description && <div className="text-xs text-ink-3">{description}</div>}
      {children}
      <div className="text-xs text-danger">{errors}</div>
    </div>
  );
}

function ObjectFieldTemplate({ title, description, properties, fieldPathId }: ObjectFieldTemplateProps) {
  const isRoot = fieldPathId.path.length === 0;
  return (
    <fieldset className={isRoot ? "space-y-4" : "space-y-3 rounded-lg border border-line p-3"}>
      {!isRoot && title && <legend className="px-1 text-xs font-medium text-ink-2">{title}</legend>}
      {description && <p className="text-xs text-ink-3">{description}</p>}
      {properties.map((property) => (
        <div key={property.name}>{property.content}</div>
      ))}
    </fieldset>
  );
}

function ArrayFieldTemplate({ title, items, canAdd, onAddClick, required }: ArrayFieldTemplateProps) {
  return (
    <fieldset className="space-y-2 rounded-lg border border-line p-3">
      <legend className="px-1 text-xs font-medium text-ink-2">
        {title}
        {required && <span className="text-danger"> *</span>}
      </legend>
      {items}
      {canAdd && (
        <Button small icon={<Plus size={13} />} onClick={onAddClick}>
          Add
        </Button>
      )}
    </fieldset>
  );
}

// biome-ignore lint/suspicious/noExplicitAny: rjsf types the items of lists so loosely
function ArrayFieldItemTemplate({ children, buttonsProps }: any) {
  return (
    <div className="flex items-start gap-2">
      <div className="min-w-0 flex-1">{children}</div>
      {buttonsProps?.hasRemove && (
        <IconButton label="Remove" onClick={buttonsProps.onRemoveItem}>
          <X size={14} />
        </IconButton>
      )}
    </div>
  );
}

function BaseInputTemplate(props: BaseInputTemplateProps) {
  const {
    id,
    value,
    required,
    disabled,
    readonly,
    onChange,
    onBlur,
    onFocus,
    options,
    schema,
    type,
    placeholder,
  } = props;
  const attributes = getInputProps(schema, type, options);
  return (
    <input
      id={id}
      name={id}
      className={fieldClass}
      required={required}
      disabled={disabled}
      readOnly={readonly}
      placeholder={placeholder}
      {...attributes}
      value={value ?? ""}
      onChange={(event) => onChange(event.target.value === "" ? options.emptyValue : event.target.value)}
      onBlur={(event) => onBlur(id, event.target.value)}
      onFocus={(event) => onFocus(id, event.target.value)}
    />
  );
}

function CheckboxWidget({ id, value, label, onChange, disabled }: WidgetProps) {
  return (
    <label htmlFor={id} className="flex items-center gap-2 text-[13px]">
      <input
        id={id}
        type="checkbox"
        checked={value === true}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
        className="accent-[var(--accent)]"
      />
      {label}
    </label>
  );
}

function SelectWidget({ id, value, options, onChange, required, disabled }: WidgetProps) {
  const choices = options.enumOptions ?? [];
  const at = choices.findIndex((choice) => JSON.stringify(choice.value) === JSON.stringify(value));
  return (
    <select
      id={id}
      className={fieldClass}
      value={at}
      disabled={disabled}
      onChange={(event) => onChange(choices[Number(event.target.value)]?.value)}
    >
      {(!required || at < 0) && <option value={-1}>Choose…</option>}
      {choices.map((choice, index) => (
        <option key={String(choice.label)} value={index}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

function TextareaWidget({ id, value, onChange, required }: WidgetProps) {
  return (
    <textarea
      id={id}
      rows={4}
      required={required}
      value={value ?? ""}
      onChange={(event) => onChange(event.target.value)}
      className="w-full rounded-md border border-line-strong bg-raised p-2 text-[13px]"
    />
  );
}

const Form = withTheme({
  templates: {
    FieldTemplate,
    ObjectFieldTemplate,
    ArrayFieldTemplate,
    ArrayFieldItemTemplate,
    BaseInputTemplate,
    ErrorListTemplate: () => null,
  },
  widgets: { CheckboxWidget, SelectWidget, TextareaWidget },
});

type Props = {
  schema: RJSFSchema;
  value: unknown;
  onChange: (value: unknown) => void;
  onSubmit: () => void;
  busy: boolean;
  /** What is asked for besides, above the button. */
  children?: ReactNode;
};

export default function InputForm({ schema, value, onChange, onSubmit, busy, children }: Props) {
  return (
    <Form
      schema={plain(schema)}
      uiSchema={{ "ui:order": fieldOrder(schema) }}
      formData={value as object}
      validator={validator}
      noHtml5Validate
      showErrorList={false}
      onChange={(event) => onChange(event.formData)}
      onSubmit={onSubmit}
      onError={() => {}} // what is wrong stands below its field
    >
      {children && <div className="mt-4">{children}</div>}
      <Button type="submit" look="primary" className="mt-4" disabled={busy}>
        {busy ? "Starting…" : "Start"}
      </Button>
    </Form>
  );
}
