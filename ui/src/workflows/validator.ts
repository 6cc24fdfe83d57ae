/** Checks what is written into a form while it is written. It interprets schemas: nothing is compiled, so the policy of the page holds.
 * The server checks again, and decides. */

import { Validator } from "@cfworker/json-schema";
import { type RJSFSchema, type RJSFValidationError, toErrorSchema, type ValidatorType } from "@rjsf/utils";

const check = (schema: object, value: unknown) =>
  new Validator(schema as never, "2020-12", false).validate(value === undefined ? null : value);

/** The places that are wrong: not that a whole is wrong because of a part of it. */
function errorsOf(schema: object, value: unknown): RJSFValidationError[] {
  const { errors } = check(schema, value);
  const places = new Set(errors.map((error) => error.instanceLocation));
  const hasInner = (place: string) =>
    [...places].some((other) => other !== place && other.startsWith(`${place}/`));
  return errors
    .filter((error) => error.keyword === "required" || !hasInner(error.instanceLocation))
    .filter((error) => !["properties", "items", "$ref", "allOf"].includes(error.keyword))
    .map((error) => {
      const missing = error.keyword === "required" ? /"([^"]+)"/.exec(error.error)?.[1] : undefined;
      const path = [...error.instanceLocation.split("/").slice(1), ...(missing ? [missing] : [])];
      const message = missing ? "is required" : error.error.replace(/^Instance /, "").replace(/\.$/, "");
      return {
        name: error.keyword,
        message,
        property: path.length ? `.${path.join(".")}` : ".",
        stack: `${path.join(".") || "input"}: ${message}`,
      };
    });
}

export const validator: ValidatorType = {
  validateFormData(data, schema) {
    const errors = errorsOf(schema, data ?? {});
    return { errors, errorSchema: toErrorSchema(errors) };
  },
  isValid(schema, data, root) {
    try {
      return check({ ...(root as RJSFSchema), ...(schema as RJSFSchema) }, data).valid;
    } catch {
      return false;
    }
  },
  rawValidation(schema, data) {
    return { errors: errorsOf(schema, data) as never[] };
  },
};
