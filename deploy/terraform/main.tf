# template.yaml in Terraform: the same resources, rights, limits and alarms, because CloudFormation makes them of that
# file. `sam package` has written it to packaged.yaml with the address of the image. docs/deploy.md explains the steps.
terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

variable "bucket" {
  description = "A bucket for the template, which is too long to be sent by itself"
  type        = string
}

variable "parameters" {
  description = "The parameters of template.yaml that differ from their defaults"
  type        = map(string)
  default     = {}
}

resource "aws_s3_object" "template" {
  bucket = var.bucket
  key    = "semantic-search/${filemd5("${path.module}/packaged.yaml")}.yaml"
  source = "${path.module}/packaged.yaml"
}

resource "aws_cloudformation_stack" "search" {
  name         = "semantic-search"
  template_url = "https://${var.bucket}.s3.amazonaws.com/${aws_s3_object.template.key}"
  parameters   = var.parameters
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
}

output "url" {
  value = aws_cloudformation_stack.search.outputs["Url"]
}
